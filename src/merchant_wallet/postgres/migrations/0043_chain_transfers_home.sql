-- Every transfer in a final block to an address that was issued. It is written with the cursor, before the cell of its merchant
-- has a deposit: the record from which each cell takes its transfers in.

-- `taken_ms` says when the merchant's cell had it as a deposit. `is_gone`: its block was read again, and does not have it.
create table chain_transfer (
    chain chain_code not null,
    tx_hash text not null check (length(tx_hash) between 1 and 80),
    log_index int not null check (log_index >= 0),
    block_log_index int check (block_log_index >= 0),
    block_number bigint not null check (block_number >= 0),
    block_hash text not null check (block_hash <> ''),
    sender bytea not null check (length(sender) = 20),
    address bytea not null check (length(address) = 20),
    merchant_id bigint not null references merchant,
    amount bigint not null check (amount > 0),
    is_gone boolean not null default false,
    taken_ms bigint,
    primary key (chain, tx_hash, log_index)
);
-- A log of a block is one transfer.
create unique index chain_transfer_log on chain_transfer (chain, block_hash, block_log_index) where block_log_index is not null;
create index chain_transfer_by_block on chain_transfer (chain, block_number);
create index chain_transfer_untaken on chain_transfer (chain, block_number) where taken_ms is null and not is_gone;

-- Each time that home's cursor of a chain was set back to an earlier block. Only inserted.
create table chain_rewind (
    chain chain_code not null,
    rewind_no int not null check (rewind_no > 0),
    final_number bigint not null check (final_number >= 0),
    rewound_ms bigint not null,
    primary key (chain, rewind_no)
);

-- Settled deposits were taken in from blocks that were read before.
insert into chain_transfer (chain, tx_hash, log_index, block_log_index, block_number, block_hash, sender, address, merchant_id,
                            amount, taken_ms)
select chain, tx_hash, log_index, block_log_index, block_number, block_hash, sender, address, merchant_id, amount, final_ms
  from deposit where final_ms is not null;
insert into chain_position (chain, final_number, rewind_no) select chain, final_number, 0 from chain_cursor;
