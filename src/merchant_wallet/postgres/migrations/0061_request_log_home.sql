-- kind: expand
-- The last signed requests of each merchant, for the developers of its client. Web processes write them in batches, workers delete
-- old ones. Nothing that moves money reads them.
create table if not exists request_log (
    log_no bigint generated always as identity,
    merchant_id bigint not null,
    key_no int not null,
    at_ms bigint not null,
    request_id text not null,
    operation text not null,
    code int not null,
    source text not null,
    took_ms int not null,
    fields json not null,
    left_out text[] not null,
    primary key (merchant_id, log_no)
);
alter table request_log alter column merchant_id set (n_distinct = 1);
create index if not exists request_log_age on request_log (at_ms);

-- How many requests each merchant made, by hour, key, operation and code.
create table if not exists request_usage (
    merchant_id bigint not null,
    hour_ms bigint not null,
    key_no int not null,
    operation text not null,
    code int not null,
    requests bigint not null,
    primary key (merchant_id, hour_ms, key_no, operation, code)
);
alter table request_usage alter column merchant_id set (n_distinct = 1);
create index if not exists request_usage_age on request_usage (hour_ms);

-- How many requests each merchant made in each minute, to compare with its rate limit.
create table if not exists request_minute (
    merchant_id bigint not null,
    minute_ms bigint not null,
    requests bigint not null,
    primary key (merchant_id, minute_ms)
);
alter table request_minute alter column merchant_id set (n_distinct = 1);
create index if not exists request_minute_age on request_minute (minute_ms);
