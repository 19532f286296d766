-- The platform's own money, in home. `treasury.py` runs these. Rows are only inserted.

-- name: record_treasury
-- An operator's own movement, a correction of one, or one that is made anew. Repeating it changes nothing.
insert into treasury_movement (chain, direction, amount, tx_hash, reason, actor, recorded_ms, corrects, corrects_direction, replaces)
values (%(chain)s::text, %(direction)s::text, %(amount_units)s::bigint, %(tx_hash)s::text, %(reason)s::text, %(actor)s::text,
        %(now_ms)s::bigint, %(corrects)s::bigint,
        case when %(corrects)s::bigint is not null then case %(direction)s::text when 'IN' then 'OUT' else 'IN' end end,
        %(replaces)s::bigint)
on conflict do nothing
returning movement_no;

-- fragment: shown
-- A record as `treasury.TreasuryShown` has it, with the number of the record that corrects it.
select t.chain, t.movement_no, t.direction, t.amount::bigint, t.tx_hash, t.reason, t.actor, t.recorded_ms, t.corrects,
       c.movement_no
  from treasury_movement t left join treasury_movement c on c.chain = t.chain and c.corrects = t.movement_no

-- name: list_treasury
-- What operators recorded, newest first.
{shown}
 order by t.recorded_ms desc, t.chain, t.movement_no desc limit %(limit)s::int;

-- name: list_of_transaction
-- What operators recorded of a transaction, oldest first.
{shown}
 where t.chain = %(chain)s::text and t.tx_hash = %(tx_hash)s::text order by t.movement_no;
