-- The journal in four ways: as it is (`one_table`), with the names of archived orders beside it (`archived`), in months with all names
-- in a table of their own (`key_table`), and in months that are each asked for a name (`each_month`).

-- name: make_tables
-- Without foreign keys. A partitioned table needs the column of its partitions in each key, so postings get the entry's moment.
create table o_entry (like entry including all);
create table o_posting (like posting including all);
create table a_entry (like entry including all);
create table a_posting (like posting including all);
create table a_order (merchant_id bigint, mc_order_id order_name, kind entry_kind, entry_id bigint,
                      primary key (merchant_id, mc_order_id, kind));
create table k_entry (like entry, primary key (merchant_id, entry_id, at_ms)) partition by range (at_ms);
create table k_posting (like posting, at_ms bigint not null, primary key (merchant_id, entry_id, posting_no, at_ms))
       partition by range (at_ms);
create table k_order (like a_order including all);
create table m_entry (like k_entry including all) partition by range (at_ms);
create table m_posting (like k_posting including all) partition by range (at_ms);
create unique index on m_entry (merchant_id, mc_order_id, kind, at_ms) where mc_order_id is not null;
create index on k_posting (merchant_id, source_id, entry_id);
create index on k_posting (merchant_id, target_id, entry_id);
create index on m_posting (merchant_id, source_id, entry_id);
create index on m_posting (merchant_id, target_id, entry_id);

-- name: fill_entries
-- Entries over two years.
insert into o_entry (merchant_id, entry_id, kind, mc_order_id, at_ms, hash)
select 1, %(base)s::bigint + n, 'user_to_merchant', 'order-' || lpad(n::text, 12, '0'), n * %(step_ms)s::bigint, sha256(n::text::bytea)
  from generate_series(0, %(entries)s::int - 1) n;

-- name: fill_postings
-- A posting for each.
insert into o_posting
select 1, entry_id, 1, %(base)s::bigint + entry_id %% 1000, 1, 'USDT', 1000000, 1000000, 1000000 from o_entry;

-- name: copy_one
-- The same entries in each month, with their names in each month.
insert into m_entry select * from o_entry;
insert into m_posting select p.*, e.at_ms from o_posting p join o_entry e using (merchant_id, entry_id);

-- name: copy_archived
-- The last tenth is in the tables, the names of the others are beside them.
insert into a_entry select * from o_entry where entry_id >= %(base)s::bigint + %(entries)s::int / 10 * 9;
insert into a_posting select * from o_posting where entry_id >= %(base)s::bigint + %(entries)s::int / 10 * 9;
insert into a_order select merchant_id, mc_order_id, kind, entry_id from o_entry
 where entry_id < %(base)s::bigint + %(entries)s::int / 10 * 9;

-- name: copy_keys
-- All names in a table of their own.
insert into k_order select merchant_id, mc_order_id, kind, entry_id from o_entry;

-- name: copy_months
-- The same entries in each month.
insert into k_entry select * from o_entry;
insert into k_posting select p.*, e.at_ms from o_posting p join o_entry e using (merchant_id, entry_id);

-- name: one_table_find
-- Looks the names up. A group does it before and while it claims its books.
select u.merchant_id, e.entry_id
  from (select unnest(%(merchants)s::bigint[]) as merchant_id, unnest(%(names)s::text[]) as name, unnest(%(kinds)s::text[]) as kind) u
 cross join lateral (
       select entry_id from o_entry where merchant_id = u.merchant_id and mc_order_id = u.name and kind = u.kind limit 1) e;

-- name: one_table_insert_entries
-- Appends the entries.
insert into o_entry (merchant_id, entry_id, kind, mc_order_id, at_ms, rate_e8, facts, hash)
select unnest(%(merchants)s::bigint[]), unnest(%(ids)s::bigint[]), unnest(%(kinds)s::text[]), unnest(%(names)s::text[]),
       unnest(%(moments)s::bigint[]), 0, '', unnest(%(hashes)s::bytea[]);

-- name: one_table_insert_postings
-- Their postings.
insert into o_posting (merchant_id, entry_id, posting_no, source_id, target_id, currency, amount, source_balance, target_balance)
select unnest(%(merchants)s::bigint[]), unnest(%(ids)s::bigint[]), 1, unnest(%(sources)s::bigint[]), 1, 'USDT', 1000000, 1000000,
       1000000;

-- name: archived_find
-- Looks the names up. A group does it before and while it claims its books.
select u.merchant_id, e.entry_id
  from (select unnest(%(merchants)s::bigint[]) as merchant_id, unnest(%(names)s::text[]) as name, unnest(%(kinds)s::text[]) as kind) u
 cross join lateral (
       (select entry_id from a_entry where merchant_id = u.merchant_id and mc_order_id = u.name and kind = u.kind limit 1)
       union all
       (select entry_id from a_order where merchant_id = u.merchant_id and mc_order_id = u.name and kind = u.kind limit 1)
       limit 1) e;

-- name: archived_insert_entries
-- Appends the entries.
insert into a_entry (merchant_id, entry_id, kind, mc_order_id, at_ms, rate_e8, facts, hash)
select unnest(%(merchants)s::bigint[]), unnest(%(ids)s::bigint[]), unnest(%(kinds)s::text[]), unnest(%(names)s::text[]),
       unnest(%(moments)s::bigint[]), 0, '', unnest(%(hashes)s::bytea[]);

-- name: archived_insert_postings
-- Their postings.
insert into a_posting (merchant_id, entry_id, posting_no, source_id, target_id, currency, amount, source_balance, target_balance)
select unnest(%(merchants)s::bigint[]), unnest(%(ids)s::bigint[]), 1, unnest(%(sources)s::bigint[]), 1, 'USDT', 1000000, 1000000,
       1000000;

-- name: key_table_find
-- Looks the names up. A group does it before and while it claims its books.
select u.merchant_id, e.entry_id
  from (select unnest(%(merchants)s::bigint[]) as merchant_id, unnest(%(names)s::text[]) as name, unnest(%(kinds)s::text[]) as kind) u
 cross join lateral (
       select entry_id from k_order where merchant_id = u.merchant_id and mc_order_id = u.name and kind = u.kind limit 1) e;

-- name: key_table_insert_entries
-- Appends the entries.
with names as (
    insert into k_order (merchant_id, mc_order_id, kind, entry_id)
    select unnest(%(merchants)s::bigint[]), unnest(%(names)s::text[]), unnest(%(kinds)s::text[]), unnest(%(ids)s::bigint[]))
insert into k_entry (merchant_id, entry_id, kind, mc_order_id, at_ms, rate_e8, facts, hash)
select unnest(%(merchants)s::bigint[]), unnest(%(ids)s::bigint[]), unnest(%(kinds)s::text[]), unnest(%(names)s::text[]),
       unnest(%(moments)s::bigint[]), 0, '', unnest(%(hashes)s::bytea[]);

-- name: key_table_insert_postings
-- Their postings.
insert into k_posting (merchant_id, entry_id, posting_no, source_id, target_id, currency, amount, source_balance, target_balance, at_ms)
select unnest(%(merchants)s::bigint[]), unnest(%(ids)s::bigint[]), 1, unnest(%(sources)s::bigint[]), 1, 'USDT', 1000000, 1000000,
       1000000, unnest(%(moments)s::bigint[]);

-- name: each_month_find
-- Looks the names up. A group does it before and while it claims its books.
select u.merchant_id, e.entry_id
  from (select unnest(%(merchants)s::bigint[]) as merchant_id, unnest(%(names)s::text[]) as name, unnest(%(kinds)s::text[]) as kind) u
 cross join lateral (
       select entry_id from m_entry where merchant_id = u.merchant_id and mc_order_id = u.name and kind = u.kind limit 1) e;

-- name: each_month_insert_entries
-- Appends the entries.
insert into m_entry (merchant_id, entry_id, kind, mc_order_id, at_ms, rate_e8, facts, hash)
select unnest(%(merchants)s::bigint[]), unnest(%(ids)s::bigint[]), unnest(%(kinds)s::text[]), unnest(%(names)s::text[]),
       unnest(%(moments)s::bigint[]), 0, '', unnest(%(hashes)s::bytea[]);

-- name: each_month_insert_postings
-- Their postings.
insert into m_posting (merchant_id, entry_id, posting_no, source_id, target_id, currency, amount, source_balance, target_balance, at_ms)
select unnest(%(merchants)s::bigint[]), unnest(%(ids)s::bigint[]), 1, unnest(%(sources)s::bigint[]), 1, 'USDT', 1000000, 1000000,
       1000000, unnest(%(moments)s::bigint[]);

-- name: one_table_read_postings
-- The postings of entries that are named by their ids, as for the payer and for a repeat.
select p.* from (select unnest(%(merchants)s::bigint[]) as merchant_id, unnest(%(ids)s::bigint[]) as entry_id) u
 cross join lateral (select * from o_posting where merchant_id = u.merchant_id and entry_id = u.entry_id) p;

-- name: archived_read_postings
-- The postings of entries that are named by their ids, as for the payer and for a repeat.
select p.* from (select unnest(%(merchants)s::bigint[]) as merchant_id, unnest(%(ids)s::bigint[]) as entry_id) u
 cross join lateral (select * from a_posting where merchant_id = u.merchant_id and entry_id = u.entry_id) p;

-- name: key_table_read_postings
-- The postings of entries that are named by their ids, as for the payer and for a repeat.
select p.* from (select unnest(%(merchants)s::bigint[]) as merchant_id, unnest(%(ids)s::bigint[]) as entry_id) u
 cross join lateral (select * from k_posting where merchant_id = u.merchant_id and entry_id = u.entry_id) p;

-- name: each_month_read_postings
-- The postings of entries that are named by their ids, as for the payer and for a repeat.
select p.* from (select unnest(%(merchants)s::bigint[]) as merchant_id, unnest(%(ids)s::bigint[]) as entry_id) u
 cross join lateral (select * from m_posting where merchant_id = u.merchant_id and entry_id = u.entry_id) p;

-- name: read_wal
-- The WAL that was written so far.
select pg_current_wal_insert_lsn() - '0/0'::pg_lsn;
