-- kind: expand
-- The span of the request that made an order (W3C traceparent), so that its payout and its callbacks belong to the same trace. Only
-- traced requests have a row. Nothing that moves money reads it.
create table if not exists order_trace (
    merchant_id bigint not null,
    order_id bigint not null,
    traceparent text not null constraint order_trace_traceparent check (traceparent ~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'),
    at_ms bigint not null,
    primary key (merchant_id, order_id)
);
create index if not exists order_trace_age on order_trace (at_ms);
