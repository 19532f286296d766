-- The proposer of something. `proposers.py` runs this.

-- name: read_proposer
-- The operator behind an actor: whether active, the role, and whether a waiting period began after a time. No row: no operator.
select o.status = 'active', o.role,
       exists (select 1 from operator_wait x
                where x.person = lower(o.name collate "C") and x.from_ms > %(proposed_ms)s::bigint)
  from operator o
 where lower(o.name collate "C") = person_of(%(actor)s::text);
