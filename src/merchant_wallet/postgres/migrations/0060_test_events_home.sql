-- kind: expand
-- Test events: callbacks that a merchant's people ask for, to try their endpoint. The web side asks, a worker sends each once.
create table if not exists test_event (
    merchant_id bigint not null,
    event_no int not null check (event_no > 0),
    url text not null,
    requested_ms bigint not null,
    requested_by text not null,
    claimed_ms bigint,
    ended_ms bigint,
    address text,
    http_status smallint,
    error text,
    answer bytea,
    latency_ms int,
    primary key (merchant_id, event_no)
);
alter table test_event alter column merchant_id set (n_distinct = 1);
create index if not exists test_event_waiting on test_event (requested_ms) where claimed_ms is null;
