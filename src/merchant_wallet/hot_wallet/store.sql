-- The hot wallets. They belong to chains, so their keys begin with the chain.

-- name: open_wallet
-- The chain's wallet as this process knows it. It is an address of ours for ever, as the one before it. Another address
-- replaces it only if no payout or cold transfer of it is open. Then everything about the old one is forgotten except a freeze.
with opened as (
    insert into hot_wallet as h (chain, address) values (%(chain)s::text, %(wallet)s::bytea)
    on conflict (chain) do update
       set address = excluded.address, next_nonce = null, funds = null, funds_ended_payouts = null, checked_ms = null
     where h.address <> excluded.address and not exists (
           select from payout_reservation r
            where r.chain = excluded.chain and r.ended_no is null and r.wallet <> excluded.address)
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
select address, ended_payouts from hot_wallet where chain = %(chain)s::text;

-- name: lock
-- Locks the wallet's row: nobody else takes nonces or funds before this transaction ends. It is written, so that later
-- reads in the same transaction are up to date.
update hot_wallet set next_nonce = next_nonce
 where chain = %(chain)s::text and address = %(wallet)s::bytea
returning next_nonce, funds, funds_ended_payouts, ended_payouts, checked_ms;

-- name: list_wallets
-- The wallets of one chain or all, with the amounts reserved in them.
select h.chain, h.address, h.next_nonce, h.funds, h.checked_ms, h.frozen_cause, h.frozen_ms,
       ((select coalesce(sum(r.amount), 0) from payout_reservation r where r.chain = h.chain and r.ended_no is null)
      + (select coalesce(sum(t.amount), 0) from cold_transfer t
          where t.chain = h.chain and t.reserved_ms is not null and t.ended_no is null))::bigint,
       (select count(*) from payout_reservation r where r.chain = h.chain and r.ended_no is null)
  from hot_wallet h where %(chain)s::text is null or h.chain = %(chain)s::text order by h.chain;
