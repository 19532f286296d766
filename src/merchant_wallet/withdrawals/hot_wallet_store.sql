-- The hot wallets and their stops. They belong to chains, so their keys begin with the chain.

-- name: open_wallet
-- The chain's wallet as this process knows it. It is an address of ours for ever, as the one before it. Another address replaces it only if no payout or
-- cold transfer of it is open. Then everything about the old one is forgotten except a freeze.
with opened as (
    insert into hot_wallet as h (chain, address) values (%(chain)s::text, %(wallet)s::bytea)
    on conflict (chain) do update
       set address = excluded.address, next_nonce = null, funds = null, funds_ended_payouts = null, checked_ms = null
     where h.address <> excluded.address and not exists (
           select from payout_reservation r
            where r.chain = excluded.chain and r.ended_no is null and r.wallet <> excluded.address
              and r.wallet <> decode(repeat('00', 20), 'hex'))
       and not exists (
           select from cold_transfer t
            where t.chain = excluded.chain and t.ended_ms is null and t.reserved_ms is not null and t.hot <> excluded.address)
    returning h.chain, h.address),
listed as (
    insert into custody_address (chain, address, purpose, since_ms)
    select chain, address, 'hot', %(now_ms)s::bigint from opened
    union
    -- The one before it: this statement does not see what it changed.
    select h.chain, h.address, 'hot', %(now_ms)s::bigint from hot_wallet h join opened o on o.chain = h.chain
    on conflict (chain, address) do nothing)
select chain from opened;

-- name: read_wallet
-- A chain's wallet.
select address, next_nonce, ended_payouts, frozen_cause from hot_wallet where chain = %(chain)s::text;

-- name: read_known_nonce
-- Whether nonces are given out already, and up to which one the chain's count needs no proof: all nonces below it were
-- given out here, and none was given back.
select h.next_nonce is not null,
       coalesce((select min(f.nonce) from wallet_nonce f
                  where f.chain = h.chain and f.wallet = h.address and f.purpose = 'free'),
                h.next_nonce,
                (select max(s.nonce) + 1 from wallet_nonce s where s.chain = h.chain and s.wallet = h.address))
  from hot_wallet h where h.chain = %(chain)s::text and h.address = %(wallet)s::bytea;

-- name: record_funds
-- The chain's answer about the wallet, unless a later request has been answered. The first nonce comes from the chain,
-- but is never one that was given out before.
update hot_wallet h
   set funds = %(funds)s::bigint, funds_ended_payouts = %(ended_payouts)s::bigint, checked_ms = %(now_ms)s::bigint,
       next_nonce = coalesce(h.next_nonce, greatest(%(nonce)s::bigint, (
           select max(s.nonce) + 1 from wallet_nonce s where s.chain = h.chain and s.wallet = h.address)))
 where h.chain = %(chain)s::text and h.address = %(wallet)s::bytea
   and (h.funds_ended_payouts is null or h.funds_ended_payouts <= %(ended_payouts)s::bigint)
returning h.next_nonce;

-- name: lose_nonces
-- Free nonces below the chain's next one are lost: a stranger's transactions used them.
update wallet_nonce set purpose = 'lost', since_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and wallet = %(wallet)s::bytea and purpose = 'free' and nonce < %(nonce)s::bigint;

-- name: freeze_wallet
-- Freeze the wallet until an operator has looked. The first cause stays.
update hot_wallet set frozen_cause = %(cause)s::text, frozen_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and frozen_ms is null;

-- name: thaw_wallet
-- An operator lets the wallet pay again. The chain is asked anew for its next nonce and its balance.
update hot_wallet
   set frozen_cause = null, frozen_ms = null, next_nonce = null, funds = null, funds_ended_payouts = null, checked_ms = null
 where chain = %(chain)s::text and frozen_ms is not null;

-- name: list_wallets
-- All wallets with the amounts reserved in them.
select h.chain, h.address, h.next_nonce, h.funds, h.checked_ms, h.frozen_cause, h.frozen_ms,
       ((select coalesce(sum(r.amount), 0) from payout_reservation r where r.chain = h.chain and r.ended_no is null)
      + (select coalesce(sum(t.amount), 0) from cold_transfer t
          where t.chain = h.chain and t.reserved_ms is not null and t.ended_no is null))::bigint,
       (select count(*) from payout_reservation r where r.chain = h.chain and r.ended_no is null)
  from hot_wallet h order by h.chain;

-- name: find_stop_causes
-- Why nothing new may be signed on a chain.
select 'the wallet is frozen: ' || h.frozen_cause from hot_wallet h
 where h.chain = %(chain)s::text and h.frozen_ms is not null
union all
select s.actor || ' stopped payouts: ' || s.cause from payout_stop s where s.chain = %(chain)s::text
union all
select 'the database was rolled back: ' || r.cause from rollback_evidence r;

-- name: stop
-- An actor stops a chain's payouts. The actor's first cause stays.
insert into payout_stop (chain, actor, cause, since_ms)
values (%(chain)s::text, %(actor)s::text, %(cause)s::text, %(now_ms)s::bigint)
on conflict (chain, actor) do nothing;

-- name: lock_frozen
-- Whether a chain's wallet is frozen. Locks it until the end of the transaction.
select frozen_cause, frozen_ms from hot_wallet where chain = %(chain)s::text for update;

-- name: take_back_stop
-- Removes one stop, exactly as it was read.
delete from payout_stop
 where chain = %(chain)s::text and actor = %(actor)s::text and since_ms = %(since_ms)s::bigint;

-- name: list_stops
-- All stops, oldest first.
select chain, actor, cause, since_ms from payout_stop order by since_ms, chain, actor;
