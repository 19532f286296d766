-- Holding the books against the chains: what moved at our own addresses and no book explains yet, what operators moved
-- themselves, and the result of every comparison.
-- Rules: rows belong to a chain, whose name is first in every key. What was recorded or found stays as it is; a movement
-- only gets the moment at which something explained it.

-- An operator's own movement of the platform's money: into custody, or out of it. Only inserted; a mistake is corrected
-- by one the other way round.
create table treasury_movement (
    chain text not null check (chain in ('ERC20', 'TRC20')),
    movement_no bigint generated always as identity,
    direction text not null check (direction in ('IN', 'OUT')),
    amount positive_units not null,
    tx_hash text not null check (length(tx_hash) between 1 and 80),
    reason text not null check (reason <> ''),
    actor text not null check (actor <> ''),
    recorded_ms bigint not null,
    primary key (chain, movement_no),
    -- The same typed twice is a mistake: two movements of one transaction are recorded as one.
    unique (chain, tx_hash, direction, amount)
);

-- Every address of ours that may hold something: hot wallets, the present one and those before it, and deposit addresses
-- from the first transfer to them on.
create table custody_address (
    chain text not null check (chain in ('ERC20', 'TRC20')),
    address bytea not null check (length(address) = 20),
    purpose text not null check (purpose in ('hot', 'deposit')),
    since_ms bigint not null,
    primary key (chain, address)
);

-- Up to which block a chain was searched for movements at these addresses.
create table custody_cursor (
    chain text primary key check (chain in ('ERC20', 'TRC20')),
    block_number bigint not null check (block_number >= 0),
    moved_ms bigint not null
);

-- A transfer at an address of ours, in a final block, that no book contained when it was found; `is_out` tells which end
-- of it is ours. `explained_ms` is set once, when a comparison first found it in the books.
create table custody_movement (
    chain text not null check (chain in ('ERC20', 'TRC20')),
    tx_hash text not null check (length(tx_hash) between 1 and 80),
    log_index int not null check (log_index >= 0),
    is_out boolean not null,
    block_number bigint not null check (block_number >= 0),
    sender bytea not null check (length(sender) = 20),
    recipient bytea not null check (length(recipient) = 20),
    amount positive_units not null,
    found_ms bigint not null,
    explained_ms bigint,
    primary key (chain, tx_hash, log_index, is_out)
);
create index custody_movement_open on custody_movement (chain, block_number) where explained_ms is null;

-- One comparison of one chain, with all that explains its differences. Without numbers it could not be made, and the
-- cause says why. `is_sound` is false when an operator must look.
create table reconciliation (
    chain text not null check (chain in ('ERC20', 'TRC20')),
    reconciliation_no bigint generated always as identity,
    at_ms bigint not null,
    block_number bigint check (block_number >= 0),
    books_units bigint,
    chain_units bigint,
    unexplained_units bigint,
    is_sound boolean not null,
    explanation jsonb not null,
    cause text check (cause <> ''),
    primary key (chain, reconciliation_no),
    constraint reconciliation_made check (
        (cause is null) = (block_number is not null) and (cause is null) = (books_units is not null)
        and (cause is null) = (chain_units is not null) and (cause is null) = (unexplained_units is not null)
        and (cause is null or not is_sound))
);
-- The sandbox's chains are held against its books too, by the moment from which a transfer counts.
create index sandbox_transfer_final on sandbox_transfer (chain, final_ms);
