-- Look-ups of one word as a transaction hash.

-- name: find_payout
-- The order for which a transaction was signed.
select merchant_id, order_id from payout_signed where tx_hash = %(tx_hash)s::text;

-- name: find_sweep
-- The sweep for which a transaction was signed.
select w.merchant_id, s.chain, s.sweep_id from sweep_signed s
  join sweep w on w.chain = s.chain and w.sweep_id = s.sweep_id where s.tx_hash = %(tx_hash)s::text;
