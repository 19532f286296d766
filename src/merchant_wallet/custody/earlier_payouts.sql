-- Payouts to addresses that became hot wallets later, in home. `earlier_payouts.py` runs these.

-- name: list_earlier_payouts
-- Everything that was signed for a payout to a hot wallet of ours before it was ours, unless the movement is known already. The block
-- is the one at which it was signed.
select s.tx_hash, s.built_at_block, r.wallet, r.recipient, r.amount
  from custody_address c
  join payout_reservation r on r.recipient = c.address and r.chain = c.chain and r.reserved_ms < c.since_ms and r.ended_no is not null
  join payout_signed s on s.merchant_id = r.merchant_id and s.order_id = r.order_id
 where c.chain = %(chain)s::text and c.purpose = 'hot'
   and not exists (select from custody_movement m where m.chain = c.chain and m.tx_hash = s.tx_hash and not m.is_out)
 order by s.tx_hash;
