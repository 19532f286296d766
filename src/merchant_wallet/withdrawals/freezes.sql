-- Frozen payouts, to compare with their orders.

-- name: list_frozen
-- The frozen open payouts of a cell's merchants. A row without a merchant if there is evidence of a rollback: both are read at
-- one moment, because an acceptance freezes payouts and deletes the evidence.
select null::bigint, null::bigint, null::bigint where exists (select from rollback_evidence)
union all
select p.merchant_id, p.order_id, p.frozen_ms
  from payout p
  join merchant m on m.merchant_id = p.merchant_id
 where p.frozen_ms is not null and p.phase <> 'closed' and m.cell_id = %(cell_id)s::int;
