-- What the payouts of a book are compared with.

-- name: list_orders
-- These orders' chains and statuses. It is asked outside the snapshot, after home was asked for their payouts.
select w.order_id, w.chain::text, w.status
  from unnest(%(order_ids)s::bigint[]) u (order_id)
 cross join lateral (
       select order_id, chain, status from withdrawal
        where merchant_id = %(merchant_id)s::bigint and order_id = u.order_id limit 1) w;
