-- kind: expand
-- What the chains took as fees for payouts, and an index for the fees of sweeps.

-- step: transaction
-- The fee of a final payout's transaction, in the smallest unit of the chain's coin. Sweeps have theirs in `sweep`.
create table if not exists network_fee (
    chain chain_code not null,
    tx_hash text not null,
    purpose text not null check (purpose in ('payout')),
    fee numeric not null check (fee >= 0),
    at_ms bigint not null,
    primary key (chain, tx_hash)
);
create index if not exists network_fee_moment on network_fee (at_ms);

-- Up to which ended payout the fees of a chain are known.
create table if not exists network_fee_cursor (
    chain chain_code primary key,
    ended_no bigint not null default 0 check (ended_no >= 0)
);

-- step: concurrently
create index concurrently if not exists sweep_ended on sweep (ended_ms) where ended_ms is not null;
