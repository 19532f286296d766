-- kind: expand
-- Cold money: the cold wallets of each chain, how much may stay hot, and transfers between the two. They belong to a chain,
-- so their keys begin with the chain.

-- step: transaction
-- Cold wallets, each registered by two people. One of a chain is current; the others are retired and still counted.
-- `opening`: what it held at `opening_block`, from which on reconciliation counts it. `balance`: what it held at the last
-- comparison.
create table if not exists cold_wallet (
    chain chain_code not null,
    address bytea not null constraint cold_wallet_address check (length(address) = 20),
    registered_ms bigint not null,
    retired_ms bigint constraint cold_wallet_retired check (retired_ms >= registered_ms),
    opening bigint constraint cold_wallet_opening check (opening >= 0),
    opening_block bigint,
    balance bigint constraint cold_wallet_balance check (balance >= 0),
    balance_block bigint,
    balance_ms bigint,
    primary key (chain, address)
);
create unique index if not exists cold_wallet_current on cold_wallet (chain) where retired_ms is null;

-- What may stay hot: above `most` it goes to the cold wallet, below `least` it comes back, each time up to `target`.
create table if not exists cold_limit (
    chain chain_code primary key,
    least bigint not null,
    target bigint not null,
    most bigint not null,
    changed_ms bigint not null,
    -- Since when the hot wallet is outside. The worker notes it.
    outside_ms bigint,
    constraint cold_limit_order check (0 <= least and least <= target and target <= most)
);

-- A transfer that two people approved. `way`: the worker's signer signs it, its bytes are signed elsewhere, or it was made
-- elsewhere and is only recorded. `step`: the worker has the next step (open), somebody signs it elsewhere (unsigned), it is
-- sent until the chain's record is final (signed); then how it ended. `version` is a fencing token.
create table if not exists cold_transfer (
    chain chain_code not null,
    transfer_id bigint not null generated always as identity,
    direction text not null constraint cold_transfer_direction check (direction in ('to_cold', 'to_hot')),
    way text not null constraint cold_transfer_way check (way in ('signer', 'elsewhere', 'recorded')),
    hot bytea not null constraint cold_transfer_hot check (length(hot) = 20),
    cold bytea not null constraint cold_transfer_cold check (length(cold) = 20),
    amount positive_units not null,
    proposal_no bigint,
    approved_by text not null constraint cold_transfer_approved check (approved_by <> ''),
    opened_ms bigint not null,
    step text not null default 'open'
        constraint cold_transfer_step check (step in ('open', 'unsigned', 'signed', 'done', 'failed', 'dropped')),
    version int not null default 0,
    claimed_until_ms bigint not null default 0,
    nonce bigint constraint cold_transfer_nonce check (nonce >= 0),
    reserved_ms bigint,
    ended_no bigint,
    unsigned bytea,
    unsigned_at_block bigint,
    unsigned_until_ms bigint,
    tx_hash text constraint cold_transfer_tx_hash check (tx_hash <> ''),
    obstacle text constraint cold_transfer_obstacle check (obstacle <> ''),
    cause text constraint cold_transfer_cause check (cause <> ''),
    drop_asked_by text,
    ended_ms bigint,
    primary key (chain, transfer_id),
    constraint cold_transfer_refill check (direction = 'to_cold' or way <> 'signer'),
    constraint cold_transfer_ended check ((ended_ms is null) = (step in ('open', 'unsigned', 'signed'))),
    constraint cold_transfer_done check (step <> 'done' or tx_hash is not null),
    constraint cold_transfer_recorded check (way <> 'recorded' or tx_hash is not null),
    constraint cold_transfer_unsigned check (step <> 'unsigned' or unsigned is not null),
    constraint cold_transfer_reserved check (reserved_ms is not null or (nonce is null and ended_no is null)),
    foreign key (chain, cold) references cold_wallet (chain, address),
    foreign key (chain, hot, nonce) references wallet_nonce (chain, wallet, nonce)
);
-- One at a time for a chain.
create unique index if not exists cold_transfer_open on cold_transfer (chain) where ended_ms is null;
-- Reserved funds that count until the wallet's balance was read after their end.
create index if not exists cold_transfer_reserved on cold_transfer (chain, ended_no) where reserved_ms is not null;
create unique index if not exists cold_transfer_nonce_once on cold_transfer (chain, hot, nonce);
-- One transaction is one transfer. What came to nothing may be recorded again.
create unique index if not exists cold_transfer_tx on cold_transfer (chain, tx_hash) where step not in ('failed', 'dropped');

-- Everything that was signed for a transfer. It is only inserted, before anybody sends it.
create table if not exists cold_signed (
    chain chain_code not null,
    transfer_id bigint not null,
    attempt_no int not null constraint cold_signed_attempt check (attempt_no > 0),
    raw bytea not null constraint cold_signed_raw check (length(raw) > 0),
    tx_hash text not null constraint cold_signed_hash unique,
    built_at_block bigint not null,
    signed_ms bigint not null,
    primary key (chain, transfer_id, attempt_no),
    foreign key (chain, transfer_id) references cold_transfer (chain, transfer_id)
);

-- step: transaction
-- squawk-ignore ban-drop-constraint
alter table wallet_nonce drop constraint if exists wallet_nonce_purpose_check;
alter table wallet_nonce add constraint wallet_nonce_purpose_check
    check (purpose in ('payout', 'free', 'cancel', 'top_up', 'cold', 'lost')) not valid;
-- squawk-ignore ban-drop-constraint
alter table custody_address drop constraint if exists custody_address_purpose_check;
alter table custody_address add constraint custody_address_purpose_check
    check (purpose in ('hot', 'deposit', 'cold')) not valid;

-- step: transaction
alter table wallet_nonce validate constraint wallet_nonce_purpose_check;
alter table custody_address validate constraint custody_address_purpose_check;
