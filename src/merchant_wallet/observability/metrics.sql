-- The metrics' queries. Each reads few rows, or the rows of an index of open things, and no more of them than are counted.

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

-- name: count_accounts_left
-- Derived accounts that no merchant has.
select count(*) from (select from xpub_pool where merchant_id is null limit %(most)s::int) a;

-- name: list_distributed_cells
-- Since when the service has not used the nodes that Citus names for its cells.
select name, unfollowed_ms from cell where admin_address is not null and state <> 'retired' order by name;
