-- Removes rows that are in files, and restores them. Only the owner runs these: no side's role may delete a row of a journal.

-- name: lock_month
-- One who removes or restores a month's rows at a time. Returns the border, if the book is here. It is an update, because a
-- transaction that begins with a write keeps its place while a shard is moved.
update archived_month m set removed_id = removed_id
 where merchant_id = %(merchant_id)s::bigint and month = %(month)s::text
   and exists (select from book b where b.merchant_id = m.merchant_id and b.is_open)
returning removed_id;

-- name: find_last_removed
-- The last entry of the next rows to remove. Null after the last ones.
select max(entry_id) from (
       select entry_id from entry
        where merchant_id = %(merchant_id)s::bigint and entry_id > %(removed_id)s::bigint and entry_id <= %(last_id)s::bigint
        order by entry_id limit %(rows)s::int) e;

-- name: keep_names
-- Keeps the order ids and references of entries, with what answers a repeat.
insert into archived_order (merchant_id, entry_id, at_ms, source_id, target_id, amount, rate_e8, second_amount, source_balance,
                            target_balance, kind, mc_order_id, currency, second_currency, facts)
select e.merchant_id, e.entry_id, e.at_ms, p.source_id, p.target_id, p.amount, e.rate_e8, s.amount,
       case when e.kind in ('adjust', 'fee_withdraw') then p.source_balance end,
       case when e.kind in ('adjust', 'fee_withdraw') then p.target_balance end,
       e.kind, e.mc_order_id, p.currency, s.currency, case when e.kind in ('adjust', 'fee_withdraw') then e.facts else '' end
  from (select * from entry
         where merchant_id = %(merchant_id)s::bigint and entry_id > %(removed_id)s::bigint and entry_id <= %(upto)s::bigint
           and mc_order_id is not null order by entry_id offset 0) e
 cross join lateral (select * from posting where merchant_id = e.merchant_id and entry_id = e.entry_id and posting_no = 1) p
  left join lateral (select * from posting where merchant_id = e.merchant_id and entry_id = e.entry_id and posting_no = 2) s on true;

-- name: remove_postings
-- Removes postings that are in a file.
delete from posting
 where merchant_id = %(merchant_id)s::bigint and entry_id > %(removed_id)s::bigint and entry_id <= %(upto)s::bigint;

-- name: remove_entries
-- Removes entries that are in a file.
delete from entry
 where merchant_id = %(merchant_id)s::bigint and entry_id > %(removed_id)s::bigint and entry_id <= %(upto)s::bigint;

-- name: move_border
-- Which entries are in files alone from now on.
update archived_month set removed_id = %(upto)s::bigint where merchant_id = %(merchant_id)s::bigint and month = %(month)s::text;

-- name: restore_entries
-- Puts entries back.
insert into entry (merchant_id, entry_id, kind, mc_order_id, at_ms, rate_e8, facts, hash)
select %(merchant_id)s::bigint, u.*
  from unnest(%(entry_ids)s::bigint[], %(kinds)s::text[], %(names)s::text[], %(moments)s::bigint[], %(rates)s::bigint[],
              %(facts)s::text[], %(hashes)s::bytea[]) u;

-- name: restore_postings
-- Puts their postings back.
insert into posting (merchant_id, entry_id, posting_no, source_id, target_id, currency, amount, source_balance, target_balance)
select %(merchant_id)s::bigint, u.*
  from unnest(%(entry_ids)s::bigint[], %(numbers)s::smallint[], %(sources)s::bigint[], %(targets)s::bigint[],
              %(currencies)s::text[], %(amounts)s::bigint[], %(source_balances)s::bigint[], %(target_balances)s::bigint[]) u;

-- name: drop_names
-- The names of entries that are back in the journal.
delete from archived_order o using unnest(%(names)s::text[], %(kinds)s::text[]) u (name, kind)
 where o.merchant_id = %(merchant_id)s::bigint and o.mc_order_id = u.name and o.kind = u.kind;
