-- What the metrics show of books, in the cell that has them. Each reads few rows, or the rows of an index of open things, and no
-- more of them than are counted.

-- name: sum_fixed_accounts
-- The fixed accounts of all books. The sum of the sub-users' balances is minus their sum.
select a.kind::text, a.currency::text, sum(a.balance)
  from book b join account a on a.merchant_id = b.merchant_id and a.account_id <= %(last_fixed)s::bigint
 where b.is_open
 group by a.kind, a.currency;

-- name: count_orders
-- Open orders by state.
select case when o.status = 1 then 'processing' when o.status = 3 then 'failed'
            when o.approved_ms is null then 'approval' else 'queued' end, count(*), min(o.created_ms)
  from ((select status, approved_ms, created_ms from withdrawal where status = 0 and {open_books} order by created_ms limit %(most)s::int)
        union all
        (select status, approved_ms, created_ms from withdrawal where status = 1 and {open_books} order by created_ms limit %(most)s::int)
        union all
        (select status, approved_ms, created_ms from withdrawal where status = 3 and {open_books} order by created_ms limit %(most)s::int)) o
 group by 1;

-- name: count_callbacks
-- Callbacks that are not delivered.
select c.state, count(*), min(c.created_ms)
  from ((select state, created_ms from callback where state = 'due' and {open_books} limit %(most)s::int)
        union all
        (select state, created_ms from callback where state in ('dead_letter', 'paused') and {open_books} limit %(most)s::int)) c
 group by c.state;

-- name: count_deposits
-- Deposits that are in no book yet.
select d.chain, d.status, count(*), min(d.seen_ms)
  from ((select chain, status, seen_ms from deposit where status = 'seen' and {open_books} limit %(most)s::int)
        union all
        (select chain, status, seen_ms from deposit where status = 'pending' and {open_books} limit %(most)s::int)
        union all
        (select chain, status, seen_ms from deposit where status = 'dust' and {open_books} limit %(most)s::int)
        union all
        (select chain, status, seen_ms from deposit where status = 'held' and {open_books} limit %(most)s::int)) d
 group by d.chain, d.status;

-- name: read_book_ids_left
-- The fewest ids that a book has left without a further range.
select min(8589934591 - id_counter) from book where next_range is null and is_open;

-- name: read_copied_ms
-- When an apart cell's copies of rates were last compared with home's. No row before the first time.
select checked_ms from reference_state where row_no = 1;
