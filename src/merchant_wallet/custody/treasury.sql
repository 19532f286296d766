-- The platform's own money, in home. `treasury.py` runs these.

-- name: record_treasury
-- An operator's own movement. Repeating it changes nothing.
insert into treasury_movement (chain, direction, amount, tx_hash, reason, actor, recorded_ms)
values (%(chain)s::text, %(direction)s::text, %(amount_units)s::bigint, %(tx_hash)s::text, %(reason)s::text, %(actor)s::text,
        %(now_ms)s::bigint)
on conflict (chain, tx_hash, direction, amount) do nothing
returning movement_no;

-- name: list_treasury
-- Movements that operators recorded, newest first.
select chain, movement_no, direction, amount::bigint, tx_hash, reason, actor, recorded_ms
  from treasury_movement order by recorded_ms desc, chain, movement_no desc limit %(limit)s::int;
