-- The platform's own money, in home. `treasury.py` runs these.

-- name: correct_treasury
-- A record of the same transaction and amount in the other direction was a mistake.
update treasury_movement set corrected_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and tx_hash = %(tx_hash)s::text and amount = %(amount_units)s::bigint
   and direction <> %(direction)s::text and corrected_ms is null
returning movement_no;

-- name: record_treasury
-- An operator's own movement, or a correction. Repeating it changes nothing.
insert into treasury_movement (chain, direction, amount, tx_hash, reason, actor, recorded_ms, corrected_ms)
values (%(chain)s::text, %(direction)s::text, %(amount_units)s::bigint, %(tx_hash)s::text, %(reason)s::text, %(actor)s::text,
        %(now_ms)s::bigint, %(corrected_ms)s::bigint)
on conflict do nothing
returning movement_no;

-- name: list_treasury
-- Movements that operators recorded, newest first.
select chain, movement_no, direction, amount::bigint, tx_hash, reason, actor, recorded_ms, corrected_ms
  from treasury_movement order by recorded_ms desc, chain, movement_no desc limit %(limit)s::int;
