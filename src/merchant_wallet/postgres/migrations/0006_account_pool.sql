-- The accounts that deposit addresses come from, derived ahead by whoever holds the seed: extended public keys alone,
-- so that a merchant can be opened, and its sub-users given addresses, where no private key is.
-- An account belongs to the platform until a merchant takes it, and to that merchant for ever: its key begins with the
-- account's own number.

create table account_pool (
    account_no int primary key check (account_no >= 0),
    xpubs jsonb not null check (xpubs ? 'ERC20' and xpubs ? 'TRC20'),
    merchant_id bigint unique references merchant
);

-- Who needs an account takes the lowest that nobody has.
create index account_pool_free on account_pool (account_no) where merchant_id is null;
