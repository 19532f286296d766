-- kind: expand
-- The sandbox's test mode: what merchants' tests asked for, and what listeners read. In a live service these tables are empty.

-- How often a merchant used a test value that acts a number of times, and how many control actions it had on a day.
create table if not exists sandbox_count (
    merchant_id bigint not null,
    name text not null,
    day int not null,
    times bigint not null constraint sandbox_count_times check (times > 0),
    primary key (merchant_id, name)
);

-- The latest attempts at callbacks of each merchant, as they were sent, for `listenCallbacks`.
create table if not exists sandbox_callback (
    merchant_id bigint not null,
    attempt_no bigint not null,
    event_id text not null,
    url text not null,
    headers text not null,
    body text not null,
    at_ms bigint not null,
    primary key (merchant_id, attempt_no)
);
create index if not exists sandbox_callback_event on sandbox_callback (merchant_id, event_id, attempt_no);

-- Deposits whose blocks become final only when a test says so. `is_gone`: the block has left the chain.
create table if not exists sandbox_unconfirmed (
    chain chain_code not null,
    deposit_no bigint not null,
    merchant_id bigint not null,
    tx_hash text not null constraint sandbox_unconfirmed_tx_hash unique,
    sender bytea not null constraint sandbox_unconfirmed_sender check (length(sender) = 20),
    recipient bytea not null constraint sandbox_unconfirmed_recipient check (length(recipient) = 20),
    amount_units bigint not null constraint sandbox_unconfirmed_amount check (amount_units > 0),
    at_ms bigint not null,
    is_gone boolean not null default false,
    primary key (chain, deposit_no)
);

-- Whether the refund of a failed order is held, as a test asked.
create table if not exists sandbox_refund (
    merchant_id bigint not null,
    order_id bigint not null,
    is_held boolean not null,
    primary key (merchant_id, order_id)
);

-- A deposit that was confirmed keeps the transaction that it had before. Others have one made of their block's number.
alter table sandbox_deposit add column if not exists tx_hash text;
