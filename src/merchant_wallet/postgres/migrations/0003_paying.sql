-- Paying on chains that move real money: hot wallets, the places of their transactions, what is reserved of their
-- funds, everything that was ever signed, and who stopped paying.
-- Rules: a row that belongs to a chain has the chain first in its key, one that belongs to an order its merchant. Of
-- what was signed the bytes are only inserted. Whoever needs both locks a payout's row before its hot wallet's.

-- The wallet that pays on a chain; its row is the lock under which places and funds are given out. `next_sequence` is
-- the place that was never given out yet (null: the chain has to be asked first). `spent_no` counts the payouts that
-- have ended; `funds_spent_no` is what it was before the chain was asked for `funds`, so that a payout which ended
-- later still counts against them.
create table hot_wallet (
    chain text primary key check (chain in ('ERC20', 'TRC20')),
    address bytea not null check (length(address) = 20),
    next_sequence bigint check (next_sequence >= 0),
    spent_no bigint not null default 0 check (spent_no >= 0),
    funds bigint check (funds >= 0),
    funds_spent_no bigint,
    checked_ms bigint,
    frozen_cause text check (frozen_cause <> ''),
    frozen_ms bigint,
    constraint hot_wallet_funds check (
        (funds is null) = (checked_ms is null) and (funds is null) = (funds_spent_no is null)
        and (funds_spent_no is null or funds_spent_no <= spent_no)),
    constraint hot_wallet_frozen check ((frozen_cause is null) = (frozen_ms is null))
);

-- Who stopped all new payouts on a chain, and why. Several may; payouts go on when the last has taken it back.
create table payout_stop (
    chain text not null check (chain in ('ERC20', 'TRC20')),
    actor text not null check (actor <> ''),
    cause text not null check (cause <> ''),
    since_ms bigint not null,
    primary key (chain, actor)
);

-- Every place among a wallet's transactions that was ever given out, where a chain numbers them: to an order's payout,
-- to a transaction that only fills it, to one of coin for a deposit address; or given back and free, or lost to a
-- stranger. A place belongs to one of them for as long as anything is signed for it: the foreign keys below see to that.
create table payout_sequence (
    chain text not null check (chain in ('ERC20', 'TRC20')),
    wallet bytea not null check (length(wallet) = 20),
    sequence bigint not null check (sequence >= 0),
    purpose text not null check (purpose in ('payout', 'free', 'fill', 'fuel', 'lost')),
    merchant_id bigint,
    order_id bigint,
    -- Since when it is what it is now.
    since_ms bigint not null,
    -- When it turned out that a fill is no longer needed, or has gone through.
    filled_ms bigint,
    primary key (chain, wallet, sequence),
    unique (merchant_id, order_id),
    unique (chain, wallet, sequence, merchant_id, order_id),
    constraint payout_sequence_owner check (
        (purpose = 'payout') = (order_id is not null) and (merchant_id is null) = (order_id is null)),
    constraint payout_sequence_filled check (filled_ms is null or purpose = 'fill')
);
-- The few places that nobody's payout will take.
create index payout_sequence_loose on payout_sequence (chain, wallet, sequence)
    where purpose = 'free' or (purpose = 'fill' and filled_ms is null);

-- What an order has of its hot wallet: so much money, and a place where there are places. Nothing is signed without it,
-- and while anything is signed it stays. `spent_no` is set when the order's transfer is final or proven dead.
create table payout_reservation (
    merchant_id bigint not null,
    order_id bigint not null,
    chain text not null check (chain in ('ERC20', 'TRC20')),
    wallet bytea not null check (length(wallet) = 20),
    sequence bigint,
    amount bigint not null check (amount > 0),
    reserved_ms bigint not null,
    spent_no bigint check (spent_no >= 0),
    primary key (merchant_id, order_id),
    unique (chain, wallet, sequence),
    foreign key (merchant_id, order_id) references payout (merchant_id, order_id),
    foreign key (chain, wallet, sequence, merchant_id, order_id)
        references payout_sequence (chain, wallet, sequence, merchant_id, order_id)
);
-- What still counts against a wallet's funds, and what has counted until a short while ago.
create index payout_reservation_open on payout_reservation (chain) where spent_no is null;
create index payout_reservation_spent on payout_reservation (chain, spent_no) where spent_no is not null;

-- Everything that was ever signed for an order, before anybody sent it. Rows are only inserted; `broadcast_ms` is filled
-- in once, when a node first took the bytes.
create table payout_signed (
    merchant_id bigint not null,
    order_id bigint not null,
    attempt_no int not null check (attempt_no > 0),
    raw bytea not null check (length(raw) > 0),
    tx_hash text not null check (tx_hash <> ''),
    built_at_block bigint not null check (built_at_block >= 0),
    signed_ms bigint not null,
    broadcast_ms bigint,
    primary key (merchant_id, order_id, attempt_no),
    foreign key (merchant_id, order_id) references payout_reservation (merchant_id, order_id)
);
-- A hash names one transaction on its chain, whosever it is.
create unique index payout_signed_hash on payout_signed (tx_hash);

-- Everything that was ever signed to fill a place, before anybody sent it; rows are only inserted.
create table filler_signed (
    chain text not null,
    wallet bytea not null,
    sequence bigint not null,
    attempt_no int not null check (attempt_no > 0),
    raw bytea not null check (length(raw) > 0),
    tx_hash text not null check (tx_hash <> ''),
    built_at_block bigint not null check (built_at_block >= 0),
    signed_ms bigint not null,
    primary key (chain, wallet, sequence, attempt_no),
    unique (tx_hash),
    foreign key (chain, wallet, sequence) references payout_sequence (chain, wallet, sequence)
);

-- An order is given up once for ever, with a cause: nothing can be signed for it, or what was signed is proven dead.
-- `signed_no` counts what was signed; that it stays what it was when the order was given up is held by the database.
alter table payout
    add column signed_no int not null default 0 check (signed_no >= 0),
    add column given_up_cause text check (given_up_cause <> ''),
    add column given_up_ms bigint,
    add column given_up_signed_no int,
    add column obstacle_kind text check (obstacle_kind <> ''),
    add column obstacle_cause text check (obstacle_cause <> ''),
    add column obstacle_ms bigint;

-- What the sandbox signed before there were hot wallets: under the wallet of twenty zero bytes, which is nobody's.
insert into payout_reservation (merchant_id, order_id, chain, wallet, amount, reserved_ms, spent_no)
select p.merchant_id, p.order_id, w.chain, decode(repeat('00', 20), 'hex'), w.amount - w.fee, p.decided_ms,
       case when w.status = 1 then null else 0 end
  from payout p join withdrawal w on w.merchant_id = p.merchant_id and w.order_id = p.order_id
 where p.raw is not null;
insert into payout_signed (merchant_id, order_id, attempt_no, raw, tx_hash, built_at_block, signed_ms)
select merchant_id, order_id, 1, raw, tx_hash, 0, decided_ms from payout where raw is not null;
update payout set signed_no = 1 where raw is not null;
update payout set given_up_cause = unpayable_cause, given_up_ms = decided_ms, given_up_signed_no = 0
 where unpayable_cause is not null;
insert into payout_stop (chain, actor, cause, since_ms)
select w.chain, 'order ' || p.order_id, p.frozen_cause, p.frozen_ms
  from payout p join withdrawal w on w.merchant_id = p.merchant_id and w.order_id = p.order_id
 where p.frozen_ms is not null and p.freezes_wallet;

-- The constraints on these columns go with them.
alter table payout
    drop column raw, drop column tx_hash, drop column unpayable_cause, drop column decided_ms, drop column freezes_wallet;
alter table payout
    add constraint payout_frozen check ((frozen_cause is null) = (frozen_ms is null)),
    add constraint payout_given_up check (
        (given_up_cause is null) = (given_up_ms is null) and (given_up_cause is null) = (given_up_signed_no is null)
        and (given_up_signed_no is null or given_up_signed_no = signed_no)),
    add constraint payout_obstacle check (
        (obstacle_kind is null) = (obstacle_cause is null) and (obstacle_kind is null) = (obstacle_ms is null));
-- What waits, and why.
create index payout_hindered on payout (obstacle_ms) where obstacle_ms is not null;
