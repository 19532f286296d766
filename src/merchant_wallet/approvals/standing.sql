-- Who acts, decides, proposed or asked, as that person is now. `standing.py` runs these.

-- name: lock_standing
-- Waits until nobody changes what the person may, and keeps others from it until the transaction ends. The other side is
-- `await_acts` of the operators.
select pg_advisory_xact_lock_shared(hashtext('operator'), hashtext(person_of(%(actor)s::text)));

-- name: read_standing
-- The operator behind an actor: whether active, the role, the merchant, and whether a waiting period began after a time. No row: no
-- operator.
select o.status = 'active', o.role, o.merchant_id,
       exists (select 1 from operator_wait x
                where x.person = lower(o.name collate "C") and x.from_ms > %(at_ms)s::bigint)
  from operator o
 where lower(o.name collate "C") = person_of(%(actor)s::text);
