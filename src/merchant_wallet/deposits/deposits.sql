-- How far the chains were read, what was seen on them and what became of it. A chain's cursor moves only from the
-- position that was read (compare and swap), so of two watchers one moves it and the other starts over.

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

-- name: rewind_cursor
-- Reads a chain again from an earlier block, never beyond what was read as final. Known transfers are not changed.
update chain_cursor
   set final_number = %(number)s::bigint, final_hash = %(hash)s::text, head_number = %(number)s::bigint,
       head_hash = %(hash)s::text, alert = null, moved_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and final_number >= %(number)s::bigint
returning chain;

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
-- The owners of the addresses that transfers went to. Most addresses are not ours.
select g.address, g.merchant_id, w.user_id
  from issued_address g
  left join wallet_address w on w.merchant_id = g.merchant_id and w.address = g.address
  left join merchant_address m on m.merchant_id = g.merchant_id and m.address = g.address
 where g.address = any(%(addresses)s::bytea[]) and (w.user_id is not null or m.address is not null);

-- name: write_seen
-- Transfers in blocks that are not final yet. If its block left the chain, a transfer may come again in another block
-- with another result, even for another merchant: what a transaction does depends on what came before it.
insert into deposit (merchant_id, chain, tx_hash, log_index, block_log_index, block_number, block_hash, sender, address, user_id,
                     amount, status, seen_ms)
select u.merchant_id, %(chain)s::text, u.tx_hash, u.log_index, u.block_log_index, u.block_number, u.block_hash, u.sender,
       u.address, u.user_id, u.amount, 'seen', %(now_ms)s::bigint
  from unnest(%(merchant_ids)s::bigint[], %(tx_hashes)s::text[], %(log_indexes)s::int[], %(block_log_indexes)s::int[],
              %(block_numbers)s::bigint[], %(block_hashes)s::text[], %(senders)s::bytea[], %(addresses)s::bytea[],
              %(user_ids)s::bigint[], %(amounts)s::bigint[])
       u (merchant_id, tx_hash, log_index, block_log_index, block_number, block_hash, sender, address, user_id, amount)
on conflict (chain, tx_hash, log_index) do update
   set merchant_id = excluded.merchant_id, block_log_index = excluded.block_log_index, block_number = excluded.block_number,
       block_hash = excluded.block_hash, sender = excluded.sender, address = excluded.address, user_id = excluded.user_id,
       amount = excluded.amount, status = 'seen'
 where deposit.status in ('seen', 'undone');

-- name: lock_known
-- Deposits of these transactions, and those that were settled in these blocks. The lock keeps others from crediting
-- them meanwhile. Each transaction is looked up on its own: for an array PostgreSQL 15 and 16 could read all of a chain.
select d.merchant_id, d.tx_hash, d.log_index, d.block_log_index, d.block_number, d.block_hash, d.address,
       d.amount as amount_units, d.status, d.cause, t.block_hash as credited_hash
  from deposit d
  left join credited_transaction t on t.chain = d.chain and t.tx_hash = d.tx_hash
 where d.chain = %(chain)s::text and (d.merchant_id, d.tx_hash, d.log_index) in (
       select k.merchant_id, k.tx_hash, k.log_index
         from unnest(%(tx_hashes)s::text[]) u (tx_hash)
        cross join lateral (
              select merchant_id, tx_hash, log_index from deposit
               where chain = %(chain)s::text and tx_hash = u.tx_hash offset 0) k
       union all
       select merchant_id, tx_hash, log_index from deposit
        where chain = %(chain)s::text and block_number >= %(first)s::bigint and block_number <= %(last)s::bigint
          and final_ms is not null)
 order by d.tx_hash, d.log_index
   for update of d;

-- name: write_final
-- Transfers in final blocks. A credited or dropped one is never overwritten, and a pending one can only become held.
insert into deposit (merchant_id, chain, tx_hash, log_index, block_log_index, block_number, block_hash, sender, address, user_id,
                     amount, status, cause, seen_ms, final_ms)
select u.merchant_id, %(chain)s::text, u.tx_hash, u.log_index, u.block_log_index, u.block_number, u.block_hash, u.sender,
       u.address, u.user_id, u.amount, u.status, u.cause, %(now_ms)s::bigint, %(now_ms)s::bigint
  from unnest(%(merchant_ids)s::bigint[], %(tx_hashes)s::text[], %(log_indexes)s::int[], %(block_log_indexes)s::int[],
              %(block_numbers)s::bigint[], %(block_hashes)s::text[], %(senders)s::bytea[], %(addresses)s::bytea[],
              %(user_ids)s::bigint[], %(amounts)s::bigint[], %(statuses)s::text[], %(causes)s::text[])
       u (merchant_id, tx_hash, log_index, block_log_index, block_number, block_hash, sender, address, user_id, amount, status,
          cause)
on conflict (chain, tx_hash, log_index) do update
   set merchant_id = excluded.merchant_id, block_log_index = excluded.block_log_index, block_number = excluded.block_number,
       block_hash = excluded.block_hash, sender = excluded.sender, address = excluded.address, user_id = excluded.user_id,
       amount = excluded.amount, status = excluded.status, cause = excluded.cause, final_ms = excluded.final_ms,
       decided_by = null, decided_ms = null
 where deposit.status in ('seen', 'undone')
    or (deposit.status in ('pending', 'dust', 'held') and excluded.status = 'held');

-- name: move_settled
-- A credited or dropped deposit that is in another block now, with the same amount and address.
update deposit set block_number = %(block_number)s::bigint, block_hash = %(block_hash)s::text,
                   block_log_index = %(block_log_index)s::int, cause = null
 where merchant_id = %(merchant_id)s::bigint and chain = %(chain)s::text and tx_hash = %(tx_hash)s::text
   and log_index = %(log_index)s::int and status in ('credited', 'dropped');

-- name: note_settled
-- How the chain differs from a deposit, which is not changed.
update deposit set cause = %(cause)s::text
 where merchant_id = %(merchant_id)s::bigint and chain = %(chain)s::text and tx_hash = %(tx_hash)s::text
   and log_index = %(log_index)s::int;

-- name: hold_settled
-- A deposit whose block has left the chain waits for a person, unless it is credited.
update deposit set status = 'held', cause = %(cause)s::text, decided_by = null, decided_ms = null
 where merchant_id = %(merchant_id)s::bigint and chain = %(chain)s::text and tx_hash = %(tx_hash)s::text
   and log_index = %(log_index)s::int and status in ('pending', 'dust');

-- name: release_held
-- A person decided that a held deposit is credited.
update deposit set status = 'pending', cause = null, next_ms = 0, decided_by = %(actor)s::text, decided_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and tx_hash = %(tx_hash)s::text and log_index = %(log_index)s::int and status = 'held'
returning merchant_id;

-- name: drop_held
-- A person decided that a held deposit is not credited.
update deposit set status = 'dropped', decided_by = %(actor)s::text, decided_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and tx_hash = %(tx_hash)s::text and log_index = %(log_index)s::int and status = 'held'
returning merchant_id;

-- name: undo_seen
-- Transfers whose blocks have left the chain, or that the final blocks do not have.
update deposit set status = 'undone'
 where chain = %(chain)s::text and status = 'seen' and block_number >= %(first)s::bigint and block_number <= %(last)s::bigint
returning tx_hash;

-- name: raise_dust
-- Dust at these addresses, which got some now, becomes pending if all dust at its address reaches the minimum. The rows to
-- change are found by what the look-up returned, and by no constant. Given a state or a chain, PostgreSQL could read all dust
-- of the chain, which only grows.
update deposit d set status = 'pending'
  from (select distinct merchant_id, address
          from unnest(%(merchant_ids)s::bigint[], %(addresses)s::bytea[]) u (merchant_id, address)) a
 cross join lateral (
       select merchant_id, chain, tx_hash, log_index, status, sum(amount) over () as units from deposit
        where merchant_id = a.merchant_id and chain = %(chain)s::text and address = a.address and status = 'dust'
       offset 0) own
 where own.units >= %(minimum_units)s::bigint and d.merchant_id = own.merchant_id and d.chain = own.chain
   and d.tx_hash = own.tx_hash and d.log_index = own.log_index and d.status = own.status;

-- name: raise_all_dust
-- The same at all addresses of a chain, after a start: the minimum may be lower now. This reads all dust of the chain.
update deposit d set status = 'pending'
  from (select merchant_id, address from deposit
         where status = 'dust' and chain = %(chain)s::text
         group by merchant_id, address
        having sum(amount) >= %(minimum_units)s::bigint) enough
 where d.merchant_id = enough.merchant_id and d.chain = %(chain)s::text and d.address = enough.address and d.status = 'dust';

-- name: peek_due
-- Deposits that can be credited now, the longest waiting first, and their merchants' settings. Nothing is locked: the
-- book decides.
select d.merchant_id, d.chain, d.tx_hash, d.log_index, d.address, d.amount, m.deposit_notify_url is not null, b.settings_version
  from deposit d
  join merchant m on m.merchant_id = d.merchant_id
  join book b on b.merchant_id = d.merchant_id
 where d.status = 'pending'
   and (d.next_ms <= %(now_ms)s::bigint
        -- No rest is this long, so the clock went back.
        or d.next_ms > %(now_ms)s::bigint + 60000)
 order by d.next_ms, d.merchant_id
 limit %(limit)s::int;

-- name: postpone
-- Why a deposit could not be credited now, and when it is tried again.
update deposit set next_ms = %(next_ms)s::bigint, cause = %(cause)s::text
 where merchant_id = %(merchant_id)s::bigint and chain = %(chain)s::text and tx_hash = %(tx_hash)s::text
   and log_index = %(log_index)s::int and status = 'pending';
