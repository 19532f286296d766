-- The orders that an acceptance freezes, because they may have been paid.

-- name: list_signed_less
-- Of these orders, those for which the signer signed more than is stored here.
select o.order_id
  from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[], %(counts)s::bigint[]) o (merchant_id, order_id, signed_count)
  left join payout p on p.merchant_id = o.merchant_id and p.order_id = o.order_id
 where coalesce(p.signed_no, 0) < o.signed_count;

-- name: list_without_payout
-- Those of these orders that have no payout.
select o.order_id
  from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[]) o (merchant_id, order_id)
  left join payout p on p.merchant_id = o.merchant_id and p.order_id = o.order_id
 where p.order_id is null;

-- name: forget_queued
-- Lets the payer find these orders again, which home's queue has lost.
update withdrawal w set is_queued = false
  from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[]) u (merchant_id, order_id)
  join book b on b.merchant_id = u.merchant_id and b.is_open
 where w.merchant_id = u.merchant_id and w.order_id = u.order_id and w.is_queued and w.status in (0, 3);

-- name: list_open
-- A cell's open orders. This includes orders that wait for approval: they may have been approved and paid in the lost part.
select merchant_id, order_id, chain, status, approved_ms is not null from withdrawal
 where status in (0, 1, 3) and {open_books};

-- name: list_open_of
-- The open ones of these orders.
select w.merchant_id, w.order_id, w.chain, w.status, w.approved_ms is not null
  from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[]) u (merchant_id, order_id)
  join book b on b.merchant_id = u.merchant_id and b.is_open
 cross join lateral (
       select * from withdrawal where merchant_id = u.merchant_id and order_id = u.order_id and status in (0, 1, 3) limit 1) w;

-- name: freeze
-- Freezes payouts, or creates those that freeze their orders. The fence stops anyone who holds a claim.
insert into payout (merchant_id, order_id, chain, phase, fence, claimed_by, claimed_until_ms, frozen_cause, frozen_ms)
select u.merchant_id, u.order_id, u.chain,
       case when u.status = 1 then 'taken_up' when u.status = 3 then 'failed' when u.is_approved then 'queued' else 'waiting' end,
       1, 'acceptance', 0, %(cause)s::text, %(now_ms)s::bigint
  from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[], %(chains)s::text[], %(statuses)s::int[], %(approved)s::boolean[])
       u (merchant_id, order_id, chain, status, is_approved)
on conflict (merchant_id, order_id) do update
   set fence = payout.fence + 1, claimed_by = coalesce(payout.claimed_by, excluded.claimed_by),
       -- An order that rested is due as soon as an operator resumes it.
       claimed_until_ms = 0, frozen_cause = excluded.frozen_cause, frozen_ms = excluded.frozen_ms
 where payout.frozen_ms is null
returning order_id;
