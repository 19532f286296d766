-- What the payouts of a book are compared with.

-- name: list_orders
-- These orders' chains and statuses, and whether they are frozen. It is asked outside the snapshot, after home was asked for their payouts.
select w.order_id, w.chain::text, w.status, w.frozen_ms is not null
  from unnest(%(order_ids)s::bigint[]) u (order_id)
 cross join lateral (
       select order_id, chain, status, frozen_ms from withdrawal
        where merchant_id = %(merchant_id)s::bigint and order_id = u.order_id limit 1) w;
