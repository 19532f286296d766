-- Sweeps: the token moved from deposit addresses to the hot wallet, after coin for the fee was sent there.
-- Rules: they belong to a chain, so their keys begin with the chain. An address has one sweep at a time. Every write
-- names the version that was read, so that of two who work on a sweep one wins each step. Of what was signed the bytes
-- are only inserted, before anybody sends them.

-- `step` is what is being done: coin is sent (fuel), the token is moved (token); then how it ended. `dropped`: nothing was
-- ever signed. `amount` is in units of the token; everything named fuel, fee or fee_limit is the chain's coin in its
-- smallest unit; `coin_price` is what a whole coin cost in units when it was planned.
create table sweep (
    chain text not null check (chain in ('ERC20', 'TRC20')),
    sweep_id bigint not null generated always as identity,
    address bytea not null check (length(address) = 20),
    merchant_id bigint not null references merchant,
    account_no int not null check (account_no >= 0),
    branch int not null check (branch in (0, 1)),
    address_index int not null check (address_index >= 0),
    wallet bytea not null check (length(wallet) = 20),
    amount bigint not null check (amount > 0),
    coin_price bigint not null check (coin_price > 0),
    fuel bigint not null check (fuel >= 0),
    fuel_fee_limit bigint not null check (fuel_fee_limit >= 0),
    token_fee_limit bigint not null check (token_fee_limit > 0),
    actor text not null check (actor <> ''),
    opened_ms bigint not null,
    step text not null check (step in ('fuel', 'token', 'done', 'failed', 'dropped')),
    version int not null default 0 check (version >= 0),
    fuel_sequence bigint check (fuel_sequence >= 0),
    token_sequence bigint check (token_sequence >= 0),
    fuel_tx_hash text check (fuel_tx_hash <> ''),
    fuel_fee bigint check (fuel_fee >= 0),
    token_tx_hash text check (token_tx_hash <> ''),
    token_fee bigint check (token_fee >= 0),
    obstacle text check (obstacle <> ''),
    cause text check (cause <> ''),
    ended_ms bigint,
    primary key (chain, sweep_id),
    unique (chain, wallet, fuel_sequence),
    foreign key (chain, wallet, fuel_sequence) references payout_sequence (chain, wallet, sequence),
    constraint sweep_ended check ((ended_ms is null) = (step in ('fuel', 'token'))),
    constraint sweep_fuelled check (step <> 'fuel' or fuel > 0),
    constraint sweep_done check (step <> 'done' or (token_tx_hash is not null and (fuel = 0 or fuel_tx_hash is not null))),
    constraint sweep_cause check ((cause is null) = (step not in ('failed', 'dropped')))
);
-- One at a time for an address, and what is under way, the oldest first.
create unique index sweep_open on sweep (chain, address) where ended_ms is null;
create index sweep_under_way on sweep (chain, sweep_id) where ended_ms is null;
-- What an address has had.
create index sweep_address on sweep (chain, address, sweep_id);
-- Lists, newest first.
create unique index sweep_newest on sweep (sweep_id);

create table sweep_signed (
    chain text not null,
    sweep_id bigint not null,
    kind text not null check (kind in ('fuel', 'token')),
    attempt_no int not null check (attempt_no > 0),
    raw bytea not null check (length(raw) > 0),
    tx_hash text not null check (tx_hash <> ''),
    built_at_block bigint not null check (built_at_block >= 0),
    signed_ms bigint not null,
    primary key (chain, sweep_id, kind, attempt_no),
    unique (tx_hash),
    foreign key (chain, sweep_id) references sweep (chain, sweep_id)
);
