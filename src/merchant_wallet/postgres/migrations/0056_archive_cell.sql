-- kind: expand
-- The archive: months of a book whose entries are in files, and what stays of them in the database.

-- One row for each month of a book that was written to a file and checked. Rows of entry and posting up to `removed_id` are gone:
-- the file alone has them. It moves up when rows are removed, and down when they are restored.
create table if not exists archived_month (
    merchant_id bigint not null,
    month text not null check (month ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'),
    first_id bigint not null,
    last_id bigint not null,
    entries bigint not null check (entries > 0),
    postings bigint not null check (postings >= 0),
    first_ms bigint not null,
    last_ms bigint not null check (last_ms >= first_ms),
    previous_hash bytea not null,
    last_hash bytea not null,
    digest bytea not null,
    removed_id bigint not null,
    written_ms bigint not null,
    primary key (merchant_id, month),
    check (first_id > 0 and last_id >= first_id and removed_id between first_id - 1 and last_id)
);
alter table archived_month alter column merchant_id set (n_distinct = 1);

-- The order ids and references of entries whose rows are gone, with what answers a repeat. The balances are those of operators'
-- entries alone.
create table if not exists archived_order (
    merchant_id bigint not null,
    entry_id bigint not null,
    at_ms bigint not null,
    source_id bigint not null,
    target_id bigint not null,
    amount bigint not null,
    rate_e8 bigint not null,
    second_amount bigint,
    source_balance bigint,
    target_balance bigint,
    kind entry_kind not null,
    mc_order_id order_name not null,
    currency text not null,
    second_currency text,
    facts text not null,
    primary key (merchant_id, mc_order_id, kind)
);
alter table archived_order alter column merchant_id set (n_distinct = 1);
