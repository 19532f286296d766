-- Approvals by people whose approvals did not count yet.

-- name: find_early_approval
-- The first order of a range that a person approved while that person's approvals did not count. The waits come from home.
-- The actor `limit` is no person, even if an operator has that name. There are two joins, one for each approver: waits are kept
-- for ever, and a join on one or the other would compare every order with every wait. `everyone` has the times in which nobody's
-- approval counted.
with wait as materialized (
    select unnest(%(persons)s::text[]) as person, unnest(%(from_ms)s::bigint[]) as from_ms,
           unnest(%(eligible_ms)s::bigint[]) as eligible_ms)
select w.order_id, w.approved_by
  from wait x join withdrawal w on person_of(w.approved_by) = x.person
 where w.merchant_id = %(merchant_id)s::bigint and w.order_id between %(first_id)s::bigint and %(last_id)s::bigint
   and w.approved_by <> 'limit' and w.approved_ms >= x.from_ms and w.approved_ms < x.eligible_ms
union all
select w.order_id, w.first_approved_by
  from wait x join withdrawal w on person_of(w.first_approved_by) = x.person
 where w.merchant_id = %(merchant_id)s::bigint and w.order_id between %(first_id)s::bigint and %(last_id)s::bigint
   and w.first_approved_ms >= x.from_ms and w.first_approved_ms < x.eligible_ms
union all
select w.order_id, case when w.approved_ms <@ %(everyone)s::int8multirange then w.approved_by else w.first_approved_by end
  from withdrawal w
 where w.merchant_id = %(merchant_id)s::bigint and w.order_id between %(first_id)s::bigint and %(last_id)s::bigint
   and (w.approved_by <> 'limit' and w.approved_ms <@ %(everyone)s::int8multirange
        or w.first_approved_ms <@ %(everyone)s::int8multirange)
 order by 1
 limit 1;
