-- What an order has of its hot wallet. Whoever needs both locks the order's payout first and the wallet's row second;
-- the wallet's row is locked by writing it, and whatever is read after that in the same transaction is up to date.

-- name: hold_fence
-- Nobody else can claim the order before this transaction ends; no row when the claim has been passed already, or
-- when it is too late to reserve anything or to give it back.
update payout set claimed_by = claimed_by
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and fence = %(fence)s::bigint
   and signed_no = 0 and given_up_ms is null and frozen_ms is null;

-- name: lock_wallet
-- The wallet's row, and nobody else gives out places or funds before this transaction ends.
update hot_wallet set next_nonce = next_nonce
 where chain = %(chain)s::text and address = %(wallet)s::bytea
returning next_nonce, funds, funds_spent_no, spent_no, checked_ms, frozen_cause;

-- name: sum_reserved
-- What is promised of the wallet's funds: open payouts, and those that ended after the funds were asked for.
select ((select coalesce(sum(amount), 0) from payout_reservation where chain = %(chain)s::text and spent_no is null)
      + (select coalesce(sum(amount), 0) from payout_reservation
          where chain = %(chain)s::text and spent_no > %(funds_spent_no)s::bigint))::bigint;

-- name: take_free_nonce
-- The lowest place that an order has given back.
update wallet_nonce
   set purpose = 'payout', merchant_id = %(merchant_id)s::bigint, order_id = %(order_id)s::bigint, since_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and wallet = %(wallet)s::bytea and nonce = (
       select f.nonce from wallet_nonce f
        where f.chain = %(chain)s::text and f.wallet = %(wallet)s::bytea and f.purpose = 'free'
        order by f.nonce limit 1)
   -- It may have become a fill since the look.
   and purpose = 'free'
returning nonce;

-- name: take_next_nonce
-- The place after all that were ever given out.
with taken as (
    update hot_wallet set next_nonce = next_nonce + 1
     where chain = %(chain)s::text and address = %(wallet)s::bytea and next_nonce is not null
    returning chain, address, next_nonce - 1 as nonce)
insert into wallet_nonce (chain, wallet, nonce, purpose, merchant_id, order_id, since_ms)
select chain, address, nonce, 'payout', %(merchant_id)s::bigint, %(order_id)s::bigint, %(now_ms)s::bigint from taken
returning nonce;

-- name: insert_reservation
-- So much of the wallet's funds, and a place if it has places, for one order.
insert into payout_reservation (merchant_id, order_id, chain, wallet, nonce, amount, reserved_ms)
values (%(merchant_id)s::bigint, %(order_id)s::bigint, %(chain)s::text, %(wallet)s::bytea, %(nonce)s::bigint,
        %(amount)s::bigint, %(now_ms)s::bigint);

-- name: drop_reservation
-- Gives back what an order has of its wallet; the place becomes free. The database refuses when anything was signed.
with dropped as (
    delete from payout_reservation
     where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint
    returning chain, wallet, nonce)
update wallet_nonce s
   set purpose = 'free', merchant_id = null, order_id = null, since_ms = %(now_ms)s::bigint
  from dropped d
 where s.chain = d.chain and s.wallet = d.wallet and s.nonce = d.nonce;

-- name: spend_reservation
-- The order's money has left the wallet, or proof was found that it never will: it counts no longer once the chain
-- has been asked for the funds again.
with counted as (
    update hot_wallet h set spent_no = h.spent_no + 1
     where h.chain = (select r.chain from payout_reservation r
                       where r.merchant_id = %(merchant_id)s::bigint and r.order_id = %(order_id)s::bigint
                         and r.spent_no is null)
    returning h.spent_no)
update payout_reservation r set spent_no = counted.spent_no
  from counted
 where r.merchant_id = %(merchant_id)s::bigint and r.order_id = %(order_id)s::bigint and r.spent_no is null;

-- name: give_up
-- Written once for ever, before the order fails: from here on nothing can be signed for it. It names how many signed
-- transfers were judged, so that one which came after can't have been forgotten. After a rollback one may be lost, so
-- nothing is proof then.
update payout
   set given_up_cause = %(cause)s::text, given_up_ms = %(now_ms)s::bigint, given_up_signed_no = signed_no
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and fence = %(fence)s::bigint
   and signed_no = %(signed_no)s::int and given_up_ms is null and frozen_ms is null
   and not exists (select from rollback_sign);

-- name: freeze_order
-- Stops the order until an operator has looked; gives how much was signed for it.
update payout set frozen_cause = %(cause)s::text, frozen_ms = %(now_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and fence = %(fence)s::bigint
   and frozen_ms is null
returning signed_no;

-- name: drop_idle
-- Gives back what orders hold whose payer died, or may not go on, before anything was signed: a later place would
-- wait for theirs. The new fence shuts out whoever still believes to have the claim.
with idle as (
    update payout p set fence = p.fence + 1
      from payout_reservation r
     where r.chain = %(chain)s::text and r.wallet = %(wallet)s::bytea and r.spent_no is null
       and r.nonce is not null and r.reserved_ms <= %(before_ms)s::bigint
       and p.merchant_id = r.merchant_id and p.order_id = r.order_id
       and p.signed_no = 0 and p.claimed_until_ms <= %(before_ms)s::bigint
    returning p.merchant_id, p.order_id),
dropped as (
    delete from payout_reservation r using idle i
     where r.merchant_id = i.merchant_id and r.order_id = i.order_id
    returning r.chain, r.wallet, r.nonce)
update wallet_nonce s
   set purpose = 'free', merchant_id = null, order_id = null, since_ms = s.since_ms
  from dropped d
 where s.chain = d.chain and s.wallet = d.wallet and s.nonce = d.nonce;
