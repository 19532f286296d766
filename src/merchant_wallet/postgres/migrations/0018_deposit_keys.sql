-- A deposit is named by its transaction: `log_index` is its place among the transaction's own logs. On Ethereum it was the
-- place among all logs of the block, which is another one when the transaction is mined again in another block.
-- Rules: deposits that were settled before keep their old name, which the journal has. `block_log_index` is the place
-- in the block, by which such a deposit is known again. A log of a block is one deposit, whatever its name. A
-- transaction is credited from one block; from another one only where a person said so.

alter table deposit add column block_log_index int check (block_log_index >= 0);
update deposit set block_log_index = log_index where chain = 'ERC20';
-- The preview is read anew, under the new names.
delete from deposit where chain = 'ERC20' and status = 'seen';
delete from chain_block where chain = 'ERC20';
update chain_cursor set head_number = final_number, head_hash = final_hash where chain = 'ERC20';

-- `held`: final, but its transaction was settled in another block, or its block has left the chain; a person decides.
-- `dropped`: a person decided that nothing is to be credited. A released one is `pending` again.
alter table deposit drop constraint deposit_status_check;
alter table deposit add constraint deposit_status_check
    check (status in ('seen', 'undone', 'pending', 'dust', 'held', 'dropped', 'credited'));
alter table deposit add column decided_by text check (decided_by <> '');
alter table deposit add column decided_ms bigint;
alter table deposit add constraint deposit_decided check (
    (decided_by is null) = (decided_ms is null)
    and (status <> 'dropped' or decided_by is not null)
    and (status not in ('seen', 'undone', 'dust', 'held') or decided_by is null));
alter table deposit alter column status set (n_distinct = 7);
create unique index deposit_log on deposit (chain, block_hash, block_log_index)
    where block_log_index is not null and final_ms is not null;
-- What a block that is read again held.
create index deposit_by_block on deposit (chain, block_number) where final_ms is not null;
create index deposit_held on deposit (seen_ms) where status = 'held';

-- The block that a transaction was credited from. Only inserted.
create table credited_transaction (
    chain text not null check (chain in ('ERC20', 'TRC20')),
    tx_hash text not null check (length(tx_hash) between 1 and 80),
    block_hash text not null check (block_hash <> ''),
    primary key (chain, tx_hash),
    unique (chain, tx_hash, block_hash)
);
insert into credited_transaction (chain, tx_hash, block_hash)
select distinct on (d.chain, d.tx_hash) d.chain, d.tx_hash, d.block_hash
  from deposit d join deposit_credit c using (merchant_id, chain, tx_hash, log_index)
 order by d.chain, d.tx_hash, c.entry_id;

-- Which block a credit is from; none where a person released the deposit, who is named then.
alter table deposit_credit add column block_hash text check (block_hash <> '');
alter table deposit_credit add column released_by text check (released_by <> '');
update deposit_credit c set block_hash = d.block_hash
  from deposit d join credited_transaction t using (chain, tx_hash, block_hash)
 where d.merchant_id = c.merchant_id and d.chain = c.chain and d.tx_hash = c.tx_hash and d.log_index = c.log_index;
-- A transfer that was credited twice before this was refused: it shows among the deposits, and the books stay as they are.
update deposit_credit set released_by = 'before blocks were compared' where block_hash is null;
update deposit d set cause = 'credited from a second block before that was refused: compare it with the chain'
  from deposit_credit c
 where d.merchant_id = c.merchant_id and d.chain = c.chain and d.tx_hash = c.tx_hash and d.log_index = c.log_index
   and c.released_by is not null;
update deposit d set status = 'held', cause = 'the transaction was credited from another block'
  from credited_transaction t
 where t.chain = d.chain and t.tx_hash = d.tx_hash and t.block_hash <> d.block_hash and d.status in ('pending', 'dust');
alter table deposit_credit add constraint deposit_credit_from check ((block_hash is null) = (released_by is not null));
alter table deposit_credit add constraint deposit_credit_one_block
    foreign key (chain, tx_hash, block_hash) references credited_transaction (chain, tx_hash, block_hash);

-- Movements at our addresses go by the new names, too; the old ones are known by their place in the block.
alter table custody_movement add column block_log_index int check (block_log_index >= 0);
update custody_movement set block_log_index = log_index where chain = 'ERC20';

-- Up to which address the balances of all addresses that were given out have been looked at, and when the last round of
-- all of them ended. One that holds something becomes a `custody_address`.
create table custody_survey (
    chain text primary key check (chain in ('ERC20', 'TRC20')),
    after_address bytea not null check (length(after_address) in (0, 20)),
    whole_ms bigint
);
