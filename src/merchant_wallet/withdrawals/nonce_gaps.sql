-- Unused nonces that later transactions wait for, and what is signed to cancel them.

-- name: find_waiting
-- The highest nonce of a payout that is signed and waits, and the highest of one that has ended.
select (select max(o.nonce) from (
           select r.nonce from payout_reservation r
            where r.chain = %(chain)s::text and r.wallet = %(wallet)s::bytea and r.ended_no is null
              and exists (select from payout_signed s where s.merchant_id = r.merchant_id and s.order_id = r.order_id)
           offset 0) o),
       (select r.nonce from payout_reservation r
         where r.chain = %(chain)s::text and r.wallet = %(wallet)s::bytea and r.nonce is not null and r.ended_no is not null
         order by r.nonce desc limit 1);

-- name: list_gaps
-- Nonces to cancel, lowest first. Also those of lost orders whose newest transfer was signed before a moment: their payouts are
-- closed, and what they reserve has not ended.
select nonce from wallet_nonce
 where chain = %(chain)s::text and wallet = %(wallet)s::bytea and purpose = 'cancel' and cancelled_ms is null
union all
select r.nonce
  from payout_reservation r
  join payout p on p.merchant_id = r.merchant_id and p.order_id = r.order_id and p.phase = 'closed'
 where r.chain = %(chain)s::text and r.wallet = %(wallet)s::bytea and r.nonce is not null and r.ended_no is null
   and (select max(s.signed_ms) from payout_signed s where s.merchant_id = r.merchant_id and s.order_id = r.order_id)
       <= %(lost_ms)s::bigint
 order by nonce;

-- name: read_lost
-- Everything that was signed with a nonce for a payout, oldest first. A cancelled nonce of another kind has nothing.
select s.raw, s.tx_hash, s.built_at_block
  from payout_reservation r
  join payout_signed s on s.merchant_id = r.merchant_id and s.order_id = r.order_id
 where r.chain = %(chain)s::text and r.wallet = %(wallet)s::bytea and r.nonce = %(nonce)s::bigint
 order by s.attempt_no;

-- name: read_cancels
-- Everything that was signed to cancel a nonce, oldest first.
select raw, tx_hash, built_at_block, signed_ms from cancel_signed
 where chain = %(chain)s::text and wallet = %(wallet)s::bytea and nonce = %(nonce)s::bigint
 order by attempt_no;

-- name: store_cancel
-- The signed bytes, before anybody broadcasts them. If another process was faster with this number, its bytes stay.
-- After a rollback none are stored, so none are sent: the nonce may belong to a lost payout.
insert into cancel_signed (chain, wallet, nonce, attempt_no, raw, tx_hash, built_at_block, signed_ms)
select %(chain)s::text, %(wallet)s::bytea, %(nonce)s::bigint, %(attempt_no)s::int, %(raw)s::bytea,
       %(tx_hash)s::text, %(built_at_block)s::bigint, %(now_ms)s::bigint
 where not exists (select from rollback_evidence)
on conflict (chain, wallet, nonce, attempt_no) do nothing;
