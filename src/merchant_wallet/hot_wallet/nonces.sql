-- The nonces of hot wallets on EVM chains. A chain uses a wallet's nonces in order. So each that was given out must be used: by
-- what it was given to, or by a transaction that cancels it.

-- name: take
-- Gives a nonce out: the lowest free one, otherwise the one after all that were ever given out.
with reused as (
    update wallet_nonce
       set purpose = %(purpose)s::text, merchant_id = %(merchant_id)s::bigint, order_id = %(order_id)s::bigint,
           since_ms = %(now_ms)s::bigint
     where chain = %(chain)s::text and wallet = %(wallet)s::bytea and nonce = (
           select f.nonce from wallet_nonce f
            where f.chain = %(chain)s::text and f.wallet = %(wallet)s::bytea and f.purpose = 'free'
            order by f.nonce limit 1)
       -- It may have been marked for cancellation since the look.
       and purpose = 'free'
    returning nonce),
counted as (
    update hot_wallet set next_nonce = next_nonce + 1
     where chain = %(chain)s::text and address = %(wallet)s::bytea and next_nonce is not null
       and not exists (select from reused)
    returning chain, address, next_nonce - 1 as nonce),
added as (
    insert into wallet_nonce (chain, wallet, nonce, purpose, merchant_id, order_id, since_ms)
    select chain, address, nonce, %(purpose)s::text, %(merchant_id)s::bigint, %(order_id)s::bigint, %(now_ms)s::bigint
      from counted
    returning nonce)
select nonce from reused union all select nonce from added;

-- name: free
-- Nothing was signed with these nonces, and nothing will be: they may be given out again.
update wallet_nonce n set purpose = 'free', merchant_id = null, order_id = null, since_ms = %(since_ms)s::bigint
  from unnest(%(nonces)s::bigint[]) as given(nonce)
 where n.chain = %(chain)s::text and n.wallet = %(wallet)s::bytea and n.nonce = given.nonce
   and n.purpose = %(purpose)s::text;

-- name: cancel
-- A nonce that somebody may have signed with elsewhere is cancelled, never given out again.
update wallet_nonce set purpose = 'cancel', since_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and wallet = %(wallet)s::bytea and nonce = %(nonce)s::bigint and purpose = %(purpose)s::text;

-- name: cancel_free
-- Nonces that are free since a moment, below one that is signed and waits for them. A payout that takes one at the same moment
-- gets it or does not.
update wallet_nonce set purpose = 'cancel', since_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and wallet = %(wallet)s::bytea and purpose = 'free' and since_ms <= %(before_ms)s::bigint
   and nonce < %(below)s::bigint;

-- name: end_cancelled
-- Cancelled nonces up to one that the chain has used are used too.
update wallet_nonce set cancelled_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and wallet = %(wallet)s::bytea and purpose = 'cancel' and cancelled_ms is null
   and nonce <= %(used)s::bigint;

-- name: read_known
-- Whether nonces are given out already, and up to which one the chain's count needs no proof: all nonces below it were
-- given out here, and none was given back.
select h.next_nonce is not null,
       coalesce((select min(f.nonce) from wallet_nonce f
                  where f.chain = h.chain and f.wallet = h.address and f.purpose = 'free'),
                h.next_nonce,
                (select max(s.nonce) + 1 from wallet_nonce s where s.chain = h.chain and s.wallet = h.address))
  from hot_wallet h where h.chain = %(chain)s::text and h.address = %(wallet)s::bytea;

-- name: begin
-- The first nonce comes from the chain, but is never one that was given out before.
update hot_wallet h
   set next_nonce = greatest(%(nonce)s::bigint, (
       select max(s.nonce) + 1 from wallet_nonce s where s.chain = h.chain and s.wallet = h.address))
 where h.chain = %(chain)s::text and h.address = %(wallet)s::bytea and h.next_nonce is null;

-- name: lose
-- Free nonces below the chain's next one are lost: a stranger's transactions used them.
update wallet_nonce set purpose = 'lost', since_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and wallet = %(wallet)s::bytea and purpose = 'free' and nonce < %(nonce)s::bigint;
