-- What the payer remembers of an order besides its status, and the sandbox's chains.
-- Rules: these rows are the payer's alone, no balance depends on them and nothing here takes a book's lock; every
-- write to a payout names the fence of the claim it is made under, so that a lapsed claim can write nothing.

-- One order's payout. Whoever holds the highest fence has the claim; a verdict on what to do with the order, its
-- signed bytes or the reason why nothing can be signed, is written down once and stays.
create table payout (
    merchant_id bigint not null,
    order_id bigint not null,
    fence bigint not null check (fence > 0),
    claimed_by text not null check (claimed_by <> ''),
    claimed_until_ms bigint not null,
    failures int not null default 0 check (failures >= 0),
    raw bytea check (length(raw) > 0),
    tx_hash text check (tx_hash <> ''),
    unpayable_cause text check (unpayable_cause <> ''),
    decided_ms bigint,
    frozen_cause text check (frozen_cause <> ''),
    frozen_ms bigint,
    freezes_wallet boolean not null default false,
    primary key (merchant_id, order_id),
    unique (merchant_id, tx_hash),
    foreign key (merchant_id, order_id) references withdrawal (merchant_id, order_id),
    constraint payout_signed_or_unpayable check (
        (raw is null) = (tx_hash is null)
        and (raw is null or unpayable_cause is null)
        and (decided_ms is null) = (raw is null and unpayable_cause is null)),
    constraint payout_frozen check ((frozen_cause is null) = (frozen_ms is null) and (frozen_ms is not null or not freezes_wallet))
);
-- The few that wait for an operator.
create index payout_frozen_open on payout (frozen_ms) where frozen_ms is not null;

-- The sandbox's two chains: every transfer they ever accepted. No merchant is known on a chain.
create table sandbox_transfer (
    tx_hash text primary key check (tx_hash <> ''),
    chain text not null check (chain in ('ERC20', 'TRC20')),
    token text not null check (token <> ''),
    recipient bytea not null check (length(recipient) = 20),
    amount_units bigint not null check (amount_units > 0),
    accepted_ms bigint not null,
    final_ms bigint not null check (final_ms >= accepted_ms),
    verdict text not null check (verdict in ('paid', 'failed'))
);
