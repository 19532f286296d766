-- Copies a book from one cell to another. `book_copies.py` runs these, and makes the statements over one table after the other.

-- name: use_keys
-- The statements of this transaction name one merchant. PostgreSQL must not read whole tables of all of them, nor compile. One side
-- waits while the other one works.
select set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
       set_config('idle_in_transaction_session_timeout', '15min', true);

-- name: is_citus
-- Whether the database is one of Citus.
select exists (select from pg_extension where extname = 'citus') as is_citus;

-- name: read_head
-- The end of the journal, the day of the book's clock, and the oldest transaction that this snapshot does not see as ended.
select b.entry_count, b.head_hash, coalesce((select max(e.entry_id) from entry e where e.merchant_id = b.merchant_id), 0) as entry_id,
       (b.last_ms / 86400000)::int as day, (pg_snapshot_xmin(pg_current_snapshot())::text::bigint & 4294967295)::text as oldest_xid
  from book b where b.merchant_id = %(merchant_id)s::bigint;

-- name: find_page
-- The last entry of the next page of the journal, and how many it has. Null after the last page.
select max(p.entry_id) as entry_id, count(*) as entries
  from (select entry_id from entry
         where merchant_id = %(merchant_id)s::bigint and entry_id > %(after)s::bigint order by entry_id limit %(page)s::int) p;

-- name: read_first
-- Where the journal begins in the tables: what is before is in the archive.
select coalesce(min(entry_id), 0)::bigint as entry_id from entry where merchant_id = %(merchant_id)s::bigint;

-- name: count_journal
-- How far the journal was copied.
select coalesce(max(entry_id), 0)::bigint as entry_id, count(*) as entries from entry where merchant_id = %(merchant_id)s::bigint;

-- name: read_positions
-- How far the cell has taken in the transfers of each chain.
select chain::text, final_number, rewind_no from chain_position order by chain;

-- name: set_positions_back
-- A cell that gets a book takes in again what came after the book's last position, and hears of each rewind since.
insert into chain_position as p (chain, final_number, rewind_no)
select u.* from unnest(%(chains)s::text[], %(final_numbers)s::bigint[], %(rewind_nos)s::int[]) u
on conflict (chain) do update
   set final_number = least(p.final_number, excluded.final_number), rewind_no = least(p.rewind_no, excluded.rewind_no)
 where p.final_number > excluded.final_number or p.rewind_no > excluded.rewind_no;
