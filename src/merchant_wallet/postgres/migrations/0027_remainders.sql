-- A token may have more decimals than the ledger (18 on BNB Smart Chain). What arrives is rounded down to whole units. The
-- rest of each transfer at an address of ours is kept here in the token's smallest units, so that books and chain can still
-- be compared to the unit: rests at one address add up to whole units that no book contains.
create table custody_remainder (
    chain chain_code not null,
    tx_hash text not null check (length(tx_hash) between 1 and 80),
    log_index int not null check (log_index >= 0),
    address bytea not null check (length(address) = 20),
    remainder bigint not null check (remainder > 0),
    primary key (chain, tx_hash, log_index)
);
create index custody_remainder_of_address on custody_remainder (chain, address);
