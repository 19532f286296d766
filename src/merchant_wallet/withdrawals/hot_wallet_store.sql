-- The wallets that pay, and who stopped them. They belong to chains, so their keys begin with the chain.

-- name: open_wallet
-- The chain's wallet as this process knows it. Another address replaces the one before only when nothing is under way
-- on that one; then all that was known of it is forgotten but a freeze.
insert into hot_wallet as h (chain, address) values (%(chain)s::text, %(wallet)s::bytea)
on conflict (chain) do update
   set address = excluded.address, next_nonce = null, funds = null, funds_spent_no = null, checked_ms = null
 where h.address <> excluded.address and not exists (
       select from payout_reservation r
        where r.chain = excluded.chain and r.spent_no is null and r.wallet <> excluded.address
          and r.wallet <> decode(repeat('00', 20), 'hex'));

-- name: read_wallet
-- A chain's wallet.
select address, next_nonce, spent_no, frozen_cause from hot_wallet where chain = %(chain)s::text;

-- name: read_known_nonce
-- Whether places are given out already, and up to which one the chain's count needs no proof: all places below it were
-- given out here, and none of them came back.
select h.next_nonce is not null,
       coalesce((select min(f.nonce) from wallet_nonce f
                  where f.chain = h.chain and f.wallet = h.address and f.purpose = 'free'),
                h.next_nonce,
                (select max(s.nonce) + 1 from wallet_nonce s where s.chain = h.chain and s.wallet = h.address))
  from hot_wallet h where h.chain = %(chain)s::text and h.address = %(wallet)s::bytea;

-- name: record_funds
-- What the chain said of the wallet, unless a later question has been answered. The first place to give out is the one
-- that the chain named, but never one that was given out before.
update hot_wallet h
   set funds = %(funds)s::bigint, funds_spent_no = %(spent_no)s::bigint, checked_ms = %(now_ms)s::bigint,
       next_nonce = coalesce(h.next_nonce, greatest(%(nonce)s::bigint, (
           select max(s.nonce) + 1 from wallet_nonce s where s.chain = h.chain and s.wallet = h.address)))
 where h.chain = %(chain)s::text and h.address = %(wallet)s::bytea
   and (h.funds_spent_no is null or h.funds_spent_no <= %(spent_no)s::bigint)
returning h.next_nonce;

-- name: lose_nonces
-- Free places below the one that the chain named are no longer free: a stranger's transactions took them.
update wallet_nonce set purpose = 'lost', since_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and wallet = %(wallet)s::bytea and purpose = 'free' and nonce < %(nonce)s::bigint;

-- name: freeze_wallet
-- Nothing more is signed by this wallet until an operator has looked. The first cause stays.
update hot_wallet set frozen_cause = %(cause)s::text, frozen_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and frozen_ms is null;

-- name: thaw_wallet
-- An operator's word that the wallet may pay again; the chain is asked anew for its next place and its funds.
update hot_wallet
   set frozen_cause = null, frozen_ms = null, next_nonce = null, funds = null, funds_spent_no = null, checked_ms = null
 where chain = %(chain)s::text and frozen_ms is not null;

-- name: list_wallets
-- All wallets with what is promised of their funds.
select h.chain, h.address, h.next_nonce, h.funds, h.checked_ms, h.frozen_cause, h.frozen_ms,
       (select coalesce(sum(r.amount), 0) from payout_reservation r where r.chain = h.chain and r.spent_no is null)::bigint,
       (select count(*) from payout_reservation r where r.chain = h.chain and r.spent_no is null)
  from hot_wallet h order by h.chain;

-- name: list_addresses
-- The addresses that no withdrawal may go to.
select address from hot_wallet;

-- name: find_halt
-- Why nothing new is signed on a chain.
select 'the wallet is frozen: ' || h.frozen_cause from hot_wallet h
 where h.chain = %(chain)s::text and h.frozen_ms is not null
union all
select s.actor || ' stopped payouts: ' || s.cause from payout_stop s where s.chain = %(chain)s::text
union all
select 'the database was rolled back: ' || r.cause from rollback_sign r;

-- name: stop
-- Somebody stops a chain's payouts; his first cause stays.
insert into payout_stop (chain, actor, cause, since_ms)
values (%(chain)s::text, %(actor)s::text, %(cause)s::text, %(now_ms)s::bigint)
on conflict (chain, actor) do nothing;

-- name: lock_frozen
-- Whether a chain's wallet is frozen; nobody freezes or thaws it before this transaction ends.
select frozen_cause, frozen_ms from hot_wallet where chain = %(chain)s::text for update;

-- name: take_back_stop
-- One stop is taken back, as it was when somebody looked at it.
delete from payout_stop
 where chain = %(chain)s::text and actor = %(actor)s::text and since_ms = %(since_ms)s::bigint;

-- name: list_stops
-- All that is stopped, the oldest first.
select chain, actor, cause, since_ms from payout_stop order by since_ms, chain, actor;
