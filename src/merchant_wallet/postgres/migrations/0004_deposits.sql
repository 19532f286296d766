-- What arrives on the chains: how far each was read, every transfer that reached an address of ours, and its credit.
-- Rules: a transfer is named by chain, transaction and place in the block's logs, for ever. Until its block is final the
-- watcher may take it back; after that only its standing changes, and its credit is inserted once, in the book's own
-- commit, and never changed.

alter domain entry_kind drop constraint entry_kind_check;
alter domain entry_kind add constraint entry_kind_check check (
    value in ('user_to_merchant', 'merchant_to_user', 'exchange', 'register', 'withdraw', 'settle', 'refund',
              'cancel', 'expire', 'adjust', 'fee_withdraw', 'deposit'));

-- Where the merchant is told of deposits; null is nowhere.
alter table merchant add column deposit_notify_url text check (length(deposit_notify_url) between 1 and 100);

-- The merchant's own deposit addresses, one for each chain.
create table merchant_address (
    merchant_id bigint not null references merchant,
    chain text not null check (chain in ('ERC20', 'TRC20')),
    address bytea not null check (length(address) = 20),
    primary key (merchant_id, chain),
    unique (merchant_id, address)
);
alter table merchant_address alter column merchant_id set (n_distinct = 1);

-- How far a chain was read. Up to the final block its transfers are settled; from there to the head they are a preview,
-- which a reorganisation may undo. `alert` is what keeps the chain from being read on, if something does.
create table chain_cursor (
    chain text primary key check (chain in ('ERC20', 'TRC20')),
    final_number bigint not null check (final_number >= 0),
    final_hash text not null check (final_hash <> ''),
    head_number bigint not null,
    head_hash text not null check (head_hash <> ''),
    alert text check (alert <> ''),
    moved_ms bigint not null,
    constraint chain_cursor_ahead check (head_number >= final_number)
);

-- The blocks of the preview, to find where a reorganisation began.
create table chain_block (
    chain text not null,
    block_number bigint not null,
    block_hash text not null check (block_hash <> ''),
    primary key (chain, block_number)
);

-- A transfer of our token to an address of ours; without a user_id it is the merchant's own. `seen`: its block is not
-- final yet. `undone`: its block has left the chain. `pending`: final and about to be credited. `dust`: final, but too
-- little until more has come. `cause` says why a pending one could not be credited the last time.
create table deposit (
    merchant_id bigint not null references merchant,
    chain text not null check (chain in ('ERC20', 'TRC20')),
    tx_hash text not null check (length(tx_hash) between 1 and 80),
    log_index int not null check (log_index >= 0),
    block_number bigint not null check (block_number >= 0),
    block_hash text not null check (block_hash <> ''),
    sender bytea not null check (length(sender) = 20),
    address bytea not null check (length(address) = 20),
    user_id bigint,
    amount bigint not null check (amount > 0),
    status text not null check (status in ('seen', 'undone', 'pending', 'dust', 'credited')),
    seen_ms bigint not null,
    final_ms bigint,
    next_ms bigint not null default 0 check (next_ms >= 0),
    cause text check (cause <> ''),
    primary key (merchant_id, chain, tx_hash, log_index),
    foreign key (merchant_id, user_id) references sub_user (merchant_id, user_id),
    constraint deposit_final check ((final_ms is null) = (status in ('seen', 'undone')))
);
-- What a transfer is belongs to its chain: no two books have the same one.
create unique index deposit_transfer on deposit (chain, tx_hash, log_index);
-- What a reorganisation may still undo, what is to be credited, and what waits for more.
create index deposit_seen on deposit (chain, block_number) where status = 'seen';
create index deposit_pending on deposit (next_ms, merchant_id) where status = 'pending';
create index deposit_dust on deposit (merchant_id, chain, address) where status = 'dust';
-- Lists, newest first: of a merchant, and of one wallet.
create index deposit_by_merchant on deposit (merchant_id, seen_ms, chain, tx_hash, log_index);
create index deposit_by_wallet on deposit (merchant_id, user_id, seen_ms, chain, tx_hash, log_index);
alter table deposit alter column merchant_id set (n_distinct = 1);

-- The one entry that a transfer was credited by, and with what. Only inserted.
create table deposit_credit (
    merchant_id bigint not null,
    chain text not null,
    tx_hash text not null,
    log_index int not null,
    entry_id bigint not null,
    currency currency not null,
    amount positive_units not null,
    rate_e8 bigint not null check (rate_e8 >= 0),
    primary key (merchant_id, chain, tx_hash, log_index),
    unique (merchant_id, entry_id),
    foreign key (merchant_id, chain, tx_hash, log_index) references deposit (merchant_id, chain, tx_hash, log_index),
    foreign key (merchant_id, entry_id) references entry (merchant_id, entry_id)
);
alter table deposit_credit alter column merchant_id set (n_distinct = 1);

-- What arrives on the sandbox's chains, each transfer in a block of its own. No merchant is known on a chain.
create table sandbox_arrival (
    chain text not null check (chain in ('ERC20', 'TRC20')),
    block_number bigint not null check (block_number > 0),
    sender bytea not null check (length(sender) = 20),
    recipient bytea not null check (length(recipient) = 20),
    amount_units bigint not null check (amount_units > 0),
    at_ms bigint not null,
    primary key (chain, block_number)
);
