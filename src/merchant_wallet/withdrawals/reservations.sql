-- What is reserved in a hot wallet for an order. To prevent deadlocks the payout's row is locked before the wallet's
-- row. Writing the wallet's row locks it, and later reads in the same transaction are up to date.

-- name: hold_fence
-- Locks the order against other claims until the end of the transaction. No row if the claim was lost, or if it is too
-- late to reserve or to release anything.
update payout set claimed_by = claimed_by
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and fence = %(fence)s::bigint
   and signed_no = 0 and given_up_ms is null and frozen_ms is null;

-- name: list_pending
-- The newest signed bytes of everything that the chain's hot wallet sends besides one order, and that has not ended. Null
-- where nothing is signed yet. Of these only earlier reservations count: so of two orders that wait for coin one goes on.
select (select s.raw from payout_signed s where s.merchant_id = r.merchant_id and s.order_id = r.order_id
         order by s.attempt_no desc limit 1)
  from payout_reservation r
  join payout p on p.merchant_id = r.merchant_id and p.order_id = r.order_id
 where r.chain = %(chain)s::text and r.ended_no is null
   and (r.merchant_id, r.order_id) <> (%(merchant_id)s::bigint, %(order_id)s::bigint)
   and (p.signed_no > 0 or (r.reserved_ms, r.merchant_id, r.order_id) < (
        select o.reserved_ms, o.merchant_id, o.order_id from payout_reservation o
         where o.merchant_id = %(merchant_id)s::bigint and o.order_id = %(order_id)s::bigint))
union all
select (select s.raw from cold_signed s where s.chain = t.chain and s.transfer_id = t.transfer_id
         order by s.attempt_no desc limit 1)
  from cold_transfer t where t.chain = %(chain)s::text and t.reserved_ms is not null and t.ended_no is null
union all
select s.raw
  from sweep w
 cross join lateral (select t.raw from sweep_signed t where t.chain = w.chain and t.sweep_id = w.sweep_id and t.kind = 'top_up'
                      order by t.attempt_no desc limit 1) s
 where w.chain = %(chain)s::text and w.ended_ms is null and w.step = 'top_up'
union all
select s.raw
  from hot_wallet h
  join wallet_nonce c on c.chain = h.chain and c.wallet = h.address and c.purpose = 'cancel' and c.cancelled_ms is null
 cross join lateral (select t.raw from cancel_signed t where t.chain = c.chain and t.wallet = c.wallet and t.nonce = c.nonce
                      order by t.attempt_no desc limit 1) s
 where h.chain = %(chain)s::text;

-- name: insert_reservation
-- An amount, and a nonce if the chain has nonces, for one order.
insert into payout_reservation (merchant_id, order_id, chain, wallet, nonce, amount, recipient, reserved_ms)
values (%(merchant_id)s::bigint, %(order_id)s::bigint, %(chain)s::text, %(wallet)s::bytea, %(nonce)s::bigint,
        %(amount)s::bigint, %(recipient)s::bytea, %(now_ms)s::bigint);

-- name: drop_reservation
-- Releases an order's reservation. Its nonce is then free. The database refuses if anything was signed.
delete from payout_reservation
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint
returning chain, wallet, nonce;

-- name: drop_closed
-- Releases what is reserved for a closed payout without a nonce.
delete from payout_reservation r using payout p
 where r.merchant_id = %(merchant_id)s::bigint and r.order_id = %(order_id)s::bigint and r.nonce is null
   and p.merchant_id = r.merchant_id and p.order_id = r.order_id and p.phase = 'closed' and p.signed_no = 0;

-- name: end_reservation
-- The order's money has left the wallet, or proof was found that it never will. It no longer counts after the next
-- request for the balance.
with counted as (
    update hot_wallet h set ended_payouts = h.ended_payouts + 1
     where h.chain = (select r.chain from payout_reservation r
                       where r.merchant_id = %(merchant_id)s::bigint and r.order_id = %(order_id)s::bigint
                         and r.ended_no is null)
    returning h.ended_payouts)
update payout_reservation r set ended_no = counted.ended_payouts
  from counted
 where r.merchant_id = %(merchant_id)s::bigint and r.order_id = %(order_id)s::bigint and r.ended_no is null;

-- name: give_up
-- Written once, before the order fails: from here on nothing can be signed for it. It names how many signed transfers
-- were judged, so a later one can't be forgotten. After a rollback one may be lost, so nothing is proof then.
update payout
   set given_up_cause = %(cause)s::text, given_up_ms = %(now_ms)s::bigint, given_up_signed_no = signed_no
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and fence = %(fence)s::bigint
   and signed_no = %(signed_no)s::int and given_up_ms is null and frozen_ms is null
   and not exists (select from rollback_evidence);

-- name: freeze_order
-- Freezes the order until an operator has looked. Returns how much was signed for it.
update payout set frozen_cause = %(cause)s::text, frozen_ms = %(now_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and fence = %(fence)s::bigint
   and frozen_ms is null
returning signed_no;

-- name: drop_idle
-- Releases reservations of orders whose payer died or stopped before anything was signed. Later nonces would wait for
-- theirs. The new token locks out the old claim's holder.
with idle as (
    update payout p set fence = p.fence + 1
      from payout_reservation r
     where r.chain = %(chain)s::text and r.wallet = %(wallet)s::bytea and r.ended_no is null
       and r.nonce is not null and r.reserved_ms <= %(before_ms)s::bigint
       and p.merchant_id = r.merchant_id and p.order_id = r.order_id
       and p.signed_no = 0 and p.claimed_until_ms <= %(before_ms)s::bigint
    returning p.merchant_id, p.order_id)
delete from payout_reservation r using idle i
 where r.merchant_id = i.merchant_id and r.order_id = i.order_id
returning r.nonce;
