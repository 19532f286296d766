-- What is reserved for orders that were lost with their book. `lost_payouts.py` runs these on home.

-- name: list_unended
-- Closed payouts whose reservations have not ended.
select r.merchant_id, r.order_id, r.chain, r.wallet, r.nonce, r.amount, r.recipient, r.reserved_ms, p.signed_no
  from payout_reservation r join payout p on p.merchant_id = r.merchant_id and p.order_id = r.order_id
 where r.ended_no is null and r.chain = any (%(chains)s::text[]) and p.phase = 'closed'
 order by r.merchant_id, r.order_id;
