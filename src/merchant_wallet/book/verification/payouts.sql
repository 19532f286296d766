-- What the payouts of a book are compared with.

-- name: list_orders
-- These orders' chains and statuses. It is asked outside the snapshot, after home was asked for their payouts.
select order_id, chain::text, status from withdrawal
 where merchant_id = %(merchant_id)s and order_id = any(%(order_ids)s::bigint[]);
