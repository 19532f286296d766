-- Who proposed something. `proposers.py` runs this.

-- name: read_standing
-- The operator behind an actor: active or not, the role, and whether a wait began after a moment. No row: no operator.
select o.status = 'active', o.role,
       exists (select 1 from operator_wait x
                where x.person = lower(o.name collate "C") and x.from_ms > %(proposed_ms)s::bigint)
  from operator o
 where lower(o.name collate "C") = person_of(%(actor)s::text);
