-- Look-ups of one word as a transaction hash, and what a list says of the results.

-- name: find_payout
-- The order for which a transaction was signed.
select merchant_id, order_id from payout_signed where tx_hash = %(tx_hash)s::text;

-- name: find_sweep
-- The sweep for which a transaction was signed.
select w.merchant_id, s.chain, s.sweep_id from sweep_signed s
  join sweep w on w.chain = s.chain and w.sweep_id = s.sweep_id where s.tx_hash = %(tx_hash)s::text;

-- name: read_orders
-- What a list says of the orders that were found.
select w.merchant_id, w.order_id, w.amount as units, w.status, w.created_ms as at_ms
  from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[]) k (merchant_id, order_id)
  join withdrawal w on w.merchant_id = k.merchant_id and w.order_id = k.order_id;

-- name: read_deposits
-- The same of deposits.
select d.merchant_id, d.chain, d.tx_hash, d.log_index, d.amount as units, d.status, d.seen_ms as at_ms
  from unnest(%(merchant_ids)s::bigint[], %(chains)s::text[], %(hashes)s::text[], %(log_indexes)s::int[])
       k (merchant_id, chain, tx_hash, log_index)
  join deposit d on d.merchant_id = k.merchant_id and d.chain = k.chain and d.tx_hash = k.tx_hash
   and d.log_index = k.log_index;

-- name: read_entries
-- The time of the entries that were found.
select e.merchant_id, e.entry_id, e.at_ms
  from unnest(%(merchant_ids)s::bigint[], %(entry_ids)s::bigint[]) k (merchant_id, entry_id)
  join entry e on e.merchant_id = k.merchant_id and e.entry_id = k.entry_id;
