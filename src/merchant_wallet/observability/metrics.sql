-- The metrics' queries. Each reads few rows, or the rows of an index of open things, and no more of them than are counted.

-- fragment: book_is_open
-- The old copy of a book that was moved, and one that is being moved, count nowhere.
merchant_id <> all (array(select merchant_id from book where not is_open))

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
  from ((select status, approved_ms, created_ms from withdrawal where status = 0 and {book_is_open} order by created_ms limit %(most)s::int)
        union all
        (select status, approved_ms, created_ms from withdrawal where status = 1 and {book_is_open} order by created_ms limit %(most)s::int)
        union all
        (select status, approved_ms, created_ms from withdrawal where status = 3 and {book_is_open} order by created_ms limit %(most)s::int)) o
 group by 1;

-- name: count_frozen
-- Orders that wait for an operator.
select count(*), min(frozen_ms) from payout where frozen_ms is not null;

-- name: count_obstacles
-- Orders that wait for an obstacle.
select chain, obstacle_kind, count(*), min(obstacle_ms)
  from (select chain, obstacle_kind, obstacle_ms from payout
         where obstacle_ms is not null and phase <> 'closed' order by obstacle_ms limit %(most)s::int) o
 group by chain, obstacle_kind;

-- name: list_hot_wallets
-- The hot wallets, with what is reserved of their funds.
select h.chain, h.funds, h.checked_ms, h.frozen_ms is not null,
       (select coalesce(sum(r.amount), 0) from payout_reservation r where r.chain = h.chain and r.ended_no is null)::bigint
  from hot_wallet h;

-- name: list_stops
-- The stops of payouts.
select chain, actor from payout_stop;

-- name: count_evidence
-- The evidence that the database was rolled back.
select subject, count(*), min(since_ms) from rollback_evidence group by subject;

-- name: count_callbacks
-- Callbacks that are not delivered.
select c.state, count(*), min(c.created_ms)
  from ((select state, created_ms from callback where state = 'due' and {book_is_open} limit %(most)s::int)
        union all
        (select state, created_ms from callback where state in ('dead_letter', 'paused') and {book_is_open} limit %(most)s::int)) c
 group by c.state;

-- name: count_deposits
-- Deposits that are in no book yet.
select d.chain, d.status, count(*), min(d.seen_ms)
  from ((select chain, status, seen_ms from deposit where status = 'seen' and {book_is_open} limit %(most)s::int)
        union all
        (select chain, status, seen_ms from deposit where status = 'pending' and {book_is_open} limit %(most)s::int)
        union all
        (select chain, status, seen_ms from deposit where status = 'dust' and {book_is_open} limit %(most)s::int)
        union all
        (select chain, status, seen_ms from deposit where status = 'held' and {book_is_open} limit %(most)s::int)) d
 group by d.chain, d.status;

-- name: list_watchers
-- How far each chain was read.
select chain, final_number, head_number, alert is not null, moved_ms from chain_cursor;

-- name: list_reconciliations
-- The last comparison of each chain, and the result of the last successful one.
select r.chain, r.at_ms, r.is_sound, m.block_number, m.unexplained_units, m.chain_units, m.explanation -> 'coin'
  from unnest(chain_codes()) c (chain)
 cross join lateral (select * from reconciliation r where r.chain = c.chain order by r.reconciliation_no desc limit 1) r
  left join lateral (select * from reconciliation m where m.chain = c.chain and m.cause is null
                      order by m.reconciliation_no desc limit 1) m on true;

-- name: read_highest_range
-- The highest given-out range.
select max(range_no)::int from id_range;

-- name: read_book_ids_left
-- The fewest ids that a book has left without a further range.
select min(8589934591 - id_counter) from book where next_range is null and is_open;

-- name: count_accounts_left
-- Derived accounts that no merchant has.
select count(*) from (select from xpub_pool where merchant_id is null limit %(most)s::int) a;
