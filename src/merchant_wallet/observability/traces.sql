-- The spans of the requests that made orders, in home. Only traced requests have a row.

-- name: keep
-- A request made an order. The first request is the one that made it; a repeat changes nothing.
insert into order_trace (merchant_id, order_id, traceparent, at_ms)
select u.* from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[], %(traceparents)s::text[], %(at_ms)s::bigint[]) u
    on conflict (merchant_id, order_id) do nothing;

-- name: find
-- The span of the request that made an order.
select traceparent from order_trace where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint;

-- name: delete_old
-- Spans of orders that were made long ago.
delete from order_trace where at_ms < %(before_ms)s::bigint;
