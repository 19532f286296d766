-- kind: expand
-- What moved on each account, by day and kind of entry: the figures of finance's reports. The rollup adds them up behind the books.

-- Account 0 stands for all sub-users' wallets. Merchant 0 stands for all merchants of the cell.
create table if not exists daily_movement (
    merchant_id bigint not null check (merchant_id >= 0),
    day int not null check (day >= 0),
    account_id int not null check (account_id >= 0),
    currency currency not null,
    kind entry_kind not null,
    in_units numeric(40) not null check (in_units >= 0),
    out_units numeric(40) not null check (out_units >= 0),
    postings bigint not null check (postings > 0),
    primary key (merchant_id, day, account_id, currency, kind)
);
alter table daily_movement alter column merchant_id set (n_distinct = 1);

-- The last entry that daily_movement contains. It is behind entry_id until older entries were added.
alter table figure_cursor add column if not exists movement_id bigint not null default 0 check (movement_id >= 0);
