-- What the operators' lists go by, and what was added up of the books for them.
-- Rules: nothing here takes a book's lock and no balance depends on it. The journal gets no index that a transfer would
-- have to write: its new one is of the rare kinds alone. Figures can be thrown away and added up anew from the journal.

-- Orders: by status and chain, of all merchants and of one, newest or largest first; what was paid to an address; what
-- waits for a word. An address on ERC20 may be written with capitals or without.
create index withdrawal_by_moment on withdrawal (status, chain, created_ms, order_id);
create index withdrawal_by_amount on withdrawal (status, chain, amount, order_id);
create index withdrawal_of_merchant_by_moment on withdrawal (merchant_id, status, chain, created_ms, order_id);
create index withdrawal_of_merchant_by_amount on withdrawal (merchant_id, status, chain, amount, order_id);
create index withdrawal_by_address on withdrawal (merchant_id, lower(address), created_ms, order_id);
create index withdrawal_unapproved on withdrawal (created_ms, order_id) where status = 0 and approved_ms is null;

-- Deposits: by status and chain, of all merchants and of one, and what came to an address.
create index deposit_by_moment on deposit (status, chain, seen_ms, tx_hash, log_index);
create index deposit_of_merchant_by_moment on deposit (merchant_id, status, chain, seen_ms, tx_hash, log_index);
create index deposit_by_address on deposit (address, seen_ms, chain, tx_hash, log_index);

-- Callbacks: by state and kind of event, of all merchants and of one.
create index callback_by_moment on callback (state, event_type, created_ms, order_id, status);
create index callback_of_merchant_by_moment on callback (merchant_id, state, event_type, created_ms, order_id, status);

-- Where all orders so far went to one chain, the planner must still expect that another is asked for.
alter table withdrawal alter column status set (n_distinct = 7), alter column chain set (n_distinct = 2);
alter table deposit alter column status set (n_distinct = 5), alter column chain set (n_distinct = 2);
alter table callback alter column state set (n_distinct = 4), alter column event_type set (n_distinct = 2);

-- Entries that are neither transfers nor exchanges, by kind.
create index entry_rare on entry (merchant_id, kind, entry_id)
    where kind not in ('user_to_merchant', 'merchant_to_user', 'exchange');

-- Sub-users by the beginning of a name. In byte order whatever the database's own is: only so is a beginning a range.
create index sub_user_by_ext on sub_user (merchant_id, ext_user_id collate "C");
create index sub_user_by_name on sub_user (merchant_id, lower(username) collate "C", user_id);

create index merchant_by_name on merchant (name collate "C", merchant_id);

-- What a book's entries of one UTC day, kind and currency add up to; merchant 0 is all of them together. `fee` is what
-- went to the platform's fees, `amount` what moved otherwise. An exchange counts in both its currencies. A day's sum
-- may be more than any balance.
create table daily_figure (
    merchant_id bigint not null check (merchant_id >= 0),
    day int not null check (day >= 0),
    kind entry_kind not null,
    currency currency not null,
    entries bigint not null check (entries > 0),
    amount numeric(40) not null check (amount >= 0),
    fee numeric(40) not null check (fee >= 0),
    primary key (merchant_id, day, kind, currency)
);

-- How far a book's entries are in the figures. Moves in the same commit as they do, so that each entry is in them once.
create table figure_cursor (
    merchant_id bigint primary key references book,
    entry_id bigint not null default 0 check (entry_id >= 0),
    entries bigint not null default 0 check (entries >= 0),
    sub_users bigint not null default 0 check (sub_users between 0 and entries),
    moved_ms bigint not null default 0
);
