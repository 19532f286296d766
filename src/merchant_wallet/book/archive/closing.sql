-- What is written to the archive. Only the owner runs these.

-- name: list_open_books
-- The open books of a cell.
select merchant_id from book where is_open order by merchant_id;

-- name: read_limits
-- How far a book can be archived: whether it is here, the end of its journal, what the figures contain, and its first unfinished order.
select b.is_open, coalesce((select max(entry_id) from entry where merchant_id = b.merchant_id), 0)::bigint as head_id,
       coalesce((select entry_id from figure_cursor where merchant_id = b.merchant_id), 0)::bigint as figures_id,
       (select min(order_id) from withdrawal where merchant_id = b.merchant_id and status in (0, 1, 3)) as open_order_id
  from book b where b.merchant_id = %(merchant_id)s::bigint;

-- name: read_previous_id
-- The entry before another one, 0 if there is none in the tables.
select coalesce(max(entry_id), 0)::bigint from entry
 where merchant_id = %(merchant_id)s::bigint and entry_id < %(entry_id)s::bigint;

-- name: add_month
-- A month that was written and checked, if the book is still here. Its rows are still in the tables.
insert into archived_month (merchant_id, month, first_id, last_id, entries, postings, first_ms, last_ms, previous_hash, last_hash,
                            digest, removed_id, written_ms)
select %(merchant_id)s::bigint, %(month)s::text, %(first_id)s::bigint, %(last_id)s::bigint, %(entries)s::bigint,
       %(postings)s::bigint, %(first_ms)s::bigint, %(last_ms)s::bigint, %(previous_hash)s::bytea, %(last_hash)s::bytea,
       %(digest)s::bytea, %(removed_id)s::bigint, %(written_ms)s::bigint
  from book where merchant_id = %(merchant_id)s::bigint and is_open
returning month;
