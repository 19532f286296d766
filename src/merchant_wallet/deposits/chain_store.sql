-- Home's record of the chains: how far they were read, the final transfers to our addresses, and the block that each
-- transaction is credited from. A chain's cursor moves only from the position that was read (compare and swap), so of two
-- watchers one moves it and the other starts over.

-- name: read_cursor
-- How far a chain was read.
select final_number, final_hash, head_number, head_hash, alert from chain_cursor where chain = %(chain)s::text;

-- name: begin_cursor
-- The position from which a chain is read. The first one stays.
insert into chain_cursor (chain, final_number, final_hash, head_number, head_hash, moved_ms)
values (%(chain)s::text, %(number)s::bigint, %(hash)s::text, %(number)s::bigint, %(hash)s::text, %(now_ms)s::bigint)
on conflict (chain) do nothing;

-- name: move_cursor
-- Compare and swap. No row if another watcher was faster.
update chain_cursor
   set final_number = %(final_number)s::bigint, final_hash = %(final_hash)s::text, head_number = %(head_number)s::bigint,
       head_hash = %(head_hash)s::text, alert = null, moved_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and final_hash = %(from_final)s::text and head_hash = %(from_head)s::text
returning chain;

-- name: raise_alert
-- What an operator should know of a chain that can't be read on.
update chain_cursor set alert = %(alert)s::text where chain = %(chain)s::text;

-- name: close_alerts
-- The alerts of all chains but these.
update chain_cursor set alert = null where alert is not null and chain <> all (%(chains)s::text[]);

-- name: rewind_cursor
-- Reads a chain again from an earlier block, never beyond what was read as final. Known transfers are not changed.
update chain_cursor
   set final_number = %(number)s::bigint, final_hash = %(hash)s::text, head_number = %(number)s::bigint,
       head_hash = %(hash)s::text, alert = null, moved_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and final_number >= %(number)s::bigint
returning chain;

-- name: lock_cursor
-- The final block up to which a chain was read. The cursor does not move before the transaction's end.
select final_number, final_hash from chain_cursor where chain = %(chain)s::text for update;

-- name: insert_rewind
-- That every cell takes in again what came after this block. The caller has the cursor's row locked, so the numbers have no gap.
insert into chain_rewind (chain, rewind_no, final_number, rewound_ms)
select %(chain)s::text, coalesce(max(rewind_no), 0) + 1, %(number)s::bigint, %(now_ms)s::bigint
  from chain_rewind where chain = %(chain)s::text;

-- name: oldest_merchant
-- The earliest time when the first address can have been issued.
select min(created_ms) from merchant;

-- name: page_blocks
-- The stored unconfirmed blocks, from the highest down.
select block_number, block_hash from chain_block
 where chain = %(chain)s::text and block_number <= %(from_number)s::bigint order by block_number desc limit %(limit)s::int;

-- name: insert_block
-- An unconfirmed block.
insert into chain_block (chain, block_number, block_hash)
values (%(chain)s::text, %(number)s::bigint, %(hash)s::text)
on conflict (chain, block_number) do update set block_hash = excluded.block_hash;

-- name: drop_blocks_above
-- Blocks that have left the chain.
delete from chain_block where chain = %(chain)s::text and block_number > %(number)s::bigint;

-- name: drop_blocks_upto
-- Final blocks are no longer watched.
delete from chain_block where chain = %(chain)s::text and block_number <= %(number)s::bigint;

-- name: find_owners
-- The merchants that the addresses were issued to. Most addresses are not ours.
select address, merchant_id from issued_address where address = any(%(addresses)s::bytea[]);

-- name: write_transfers
-- The transfers to our addresses in final blocks. A block never changes, so a transfer that is known from the same block stays as
-- it is, also under an older name. In another block it is another transfer, which its cell has not taken in yet.
insert into chain_transfer (chain, tx_hash, log_index, block_log_index, block_number, block_hash, sender, address, merchant_id,
                            amount)
select %(chain)s::text, u.tx_hash, u.log_index, u.block_log_index, u.block_number, u.block_hash, u.sender, u.address,
       u.merchant_id, u.amount
  from unnest(%(merchant_ids)s::bigint[], %(tx_hashes)s::text[], %(log_indexes)s::int[], %(block_log_indexes)s::int[],
              %(block_numbers)s::bigint[], %(block_hashes)s::text[], %(senders)s::bytea[], %(addresses)s::bytea[],
              %(amounts)s::bigint[])
       u (merchant_id, tx_hash, log_index, block_log_index, block_number, block_hash, sender, address, amount)
 where not exists (
       select from chain_transfer t
        where t.chain = %(chain)s::text and t.block_hash = u.block_hash and t.block_log_index = u.block_log_index
          and t.tx_hash = u.tx_hash)
on conflict (chain, tx_hash, log_index) do update
   set block_log_index = excluded.block_log_index, block_number = excluded.block_number, block_hash = excluded.block_hash,
       sender = excluded.sender, address = excluded.address, merchant_id = excluded.merchant_id, amount = excluded.amount,
       is_gone = false, taken_ms = null
 where chain_transfer.block_hash <> excluded.block_hash;

-- name: correct_transfers
-- After these blocks were read: marks the known transfers that they do not have, and those that they have again.
update chain_transfer t set is_gone = not t.is_gone, taken_ms = null
  from (select k.tx_hash, k.log_index, bool_or(u.tx_hash is not null) as is_there
          from chain_transfer k
          left join unnest(%(tx_hashes)s::text[], %(log_indexes)s::int[], %(block_log_indexes)s::int[], %(block_hashes)s::text[])
                    u (tx_hash, log_index, block_log_index, block_hash)
                 on u.tx_hash = k.tx_hash and u.block_hash = k.block_hash
                and (u.block_log_index = k.block_log_index
                     or (u.log_index = k.log_index and (u.block_log_index is null or k.block_log_index is null)))
         where k.chain = %(chain)s::text and k.block_number >= %(first)s::bigint and k.block_number <= %(last)s::bigint
         group by k.tx_hash, k.log_index) f
 where t.chain = %(chain)s::text and t.tx_hash = f.tx_hash and t.log_index = f.log_index and t.is_gone = f.is_there;

-- name: offer_transfers
-- What a cell has to take in after its position: one page of whole blocks, and transfers below it that it has not taken yet. The
-- first columns say where the blocks begin and end, and which rewind they follow. They are the same in each row, and there is one
-- row without a transfer if there is none. Without a position the cell begins at the cursor.
with extent as materialized (
    select b.*,
           coalesce((select block_number from chain_transfer
                      where chain = %(chain)s::text and block_number > b.after_number and block_number <= b.final_number
                      order by block_number offset %(page)s::int limit 1), b.final_number) as last_number
      from (select k.final_number,
                   least(k.final_number, %(position)s::bigint,
                         (select min(r.final_number) from chain_rewind r
                           where r.chain = k.chain and r.rewind_no > %(rewind_no)s::int)) as after_number,
                   coalesce((select max(r.rewind_no) from chain_rewind r where r.chain = k.chain), 0) as rewind_no
              from chain_cursor k where k.chain = %(chain)s::text) b)
select e.after_number, e.last_number, e.final_number, e.rewind_no,
       t.merchant_id, t.tx_hash, t.log_index, t.block_number, t.block_hash, t.sender, t.address, t.amount, t.block_log_index
  from extent e
  left join lateral (
       select n.* from chain_transfer n
        where n.chain = %(chain)s::text and n.block_number > e.after_number and n.block_number <= e.last_number and not n.is_gone
          and (select m.cell_id from merchant m where m.merchant_id = n.merchant_id) = %(cell_id)s::int
       union all
       (select n.* from chain_transfer n
         where n.chain = %(chain)s::text and n.block_number <= e.after_number and n.taken_ms is null and not n.is_gone
           and (select m.cell_id from merchant m where m.merchant_id = n.merchant_id) = %(cell_id)s::int
         order by n.block_number limit %(page)s::int)) t on true
 order by t.block_number, t.block_log_index, t.tx_hash, t.log_index;

-- name: mark_taken
-- The cell has these transfers. One that is in another block by now is taken in again.
update chain_transfer t set taken_ms = %(now_ms)s::bigint
  from unnest(%(tx_hashes)s::text[], %(log_indexes)s::int[], %(block_hashes)s::text[]) u (tx_hash, log_index, block_hash)
 where t.chain = %(chain)s::text and t.tx_hash = u.tx_hash and t.log_index = u.log_index and t.block_hash = u.block_hash
   and t.taken_ms is null and not t.is_gone;

-- name: record_credits
-- The block from which each transaction is credited. The first one stays.
insert into credited_transaction (chain, tx_hash, block_hash)
select distinct on (u.chain, u.tx_hash) u.chain, u.tx_hash, u.block_hash
  from unnest(%(chains)s::text[], %(tx_hashes)s::text[], %(block_hashes)s::text[]) u (chain, tx_hash, block_hash)
 order by u.chain, u.tx_hash
on conflict do nothing;

-- name: read_credits
-- The blocks from which these transactions are credited.
select t.chain, t.tx_hash, t.block_hash
  from (select distinct u.chain, u.tx_hash from unnest(%(chains)s::text[], %(tx_hashes)s::text[]) u (chain, tx_hash)) u
  join credited_transaction t on t.chain = u.chain and t.tx_hash = u.tx_hash;
