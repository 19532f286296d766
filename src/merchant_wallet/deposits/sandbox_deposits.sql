-- Deposits on the sandbox's chains. A chain knows no merchant, so there is none here.

-- name: lock_deposits
-- One change at a time, so that blocks become visible in the order of their numbers. The web side may lock this table alone.
lock table sandbox_unconfirmed in share row exclusive mode;

-- name: insert_deposit
-- A transfer in its chain's next block, no earlier than the block before.
insert into sandbox_deposit (chain, block_number, sender, recipient, amount_units, at_ms, tx_hash)
select %(chain)s::text, coalesce(max(block_number), 0) + 1, %(sender)s::bytea, %(recipient)s::bytea, %(amount_units)s::bigint,
       greatest(max(at_ms), %(at_ms)s::bigint), %(tx_hash)s::text
  from sandbox_deposit where chain = %(chain)s::text
returning block_number, at_ms;

-- name: last_deposit
-- The newest block up to a moment.
select block_number, sender, recipient, amount_units, at_ms, tx_hash from sandbox_deposit
 where chain = %(chain)s::text and at_ms <= %(until_ms)s::bigint order by block_number desc limit 1;

-- name: page_sandbox_deposits
-- The blocks of a range.
select block_number, sender, recipient, amount_units, at_ms, tx_hash from sandbox_deposit
 where chain = %(chain)s::text and block_number >= %(first)s::bigint and block_number <= %(last)s::bigint order by block_number;

-- name: sum_received
-- What an address has received up to a block. Nothing is ever sent from the sandbox's own addresses.
select coalesce(sum(amount_units), 0)::bigint from sandbox_deposit
 where chain = %(chain)s::text and recipient = %(recipient)s::bytea and block_number <= %(last)s::bigint;

-- name: list_unconfirmed
-- The deposits that wait for a test, in the order of their blocks.
select deposit_no, tx_hash, sender, recipient, amount_units, at_ms, is_gone from sandbox_unconfirmed
 where chain = %(chain)s::text order by deposit_no;
