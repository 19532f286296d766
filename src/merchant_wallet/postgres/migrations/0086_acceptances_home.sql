-- kind: expand
-- What the acceptance of a rollback keeps. Merchants whom a restored home does not know get what they had if they come back, and
-- nobody else gets it.

-- Accounts that left the pool of extended public keys. A merchant that comes back later takes its own again.
create table if not exists lost_xpub (
    account_no int primary key constraint lost_xpub_account_no check (account_no >= 0),
    xpubs jsonb not null constraint lost_xpub_xpubs check (xpubs ? 'ERC20' and xpubs ? 'TRC20'),
    lost_ms bigint not null
);

-- Ranges of ids up to these were given out, whether home knows to whom or not.
create table if not exists lost_range (
    range_no range_number primary key,
    lost_ms bigint not null
);

-- Which copy of a book two people chose, until the next acceptance has placed it.
create table if not exists kept_copy (
    merchant_id bigint primary key references merchant,
    cell_id int not null references cell,
    chosen_ms bigint not null
);
