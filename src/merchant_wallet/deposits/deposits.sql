-- A cell's deposits: what was seen on the chains and what became of it, and how far home's transfers were taken in. The cell's
-- position moves only from where it was read (compare and swap), so of two that take in one stores and the other drops.

-- name: read_position
-- How far the cell has taken in the chain's transfers.
select final_number, rewind_no from chain_position where chain = %(chain)s::text;

-- name: begin_position
-- Where the cell begins. The first one stays.
insert into chain_position (chain, final_number, rewind_no)
values (%(chain)s::text, %(position)s::bigint, %(rewind_no)s::int)
on conflict (chain) do nothing;

-- name: move_position
-- Compare and swap. No row if somebody else has moved the cell's position since it was read. The row stays locked until the
-- transfers are stored.
update chain_position set final_number = %(last)s::bigint, rewind_no = %(rewind_no)s::int
 where chain = %(chain)s::text and final_number = %(from_number)s::bigint and rewind_no = %(from_rewind_no)s::int
returning chain;

-- name: find_open
-- Which of these books are here and open. Ask after the position was moved: who closes a book waits for that transaction.
select u.merchant_id
  from unnest(%(merchant_ids)s::bigint[]) u (merchant_id)
 cross join lateral (select 1 from book where merchant_id = u.merchant_id and is_open limit 1) b;

-- name: find_users
-- The sub-users of these addresses; null for a merchant's own address. An address that nobody has registered is left out, and
-- those of a closed book.
select u.merchant_id, u.address, w.user_id
  from unnest(%(merchant_ids)s::bigint[], %(addresses)s::bytea[]) u (merchant_id, address)
  join book b on b.merchant_id = u.merchant_id and b.is_open
  left join wallet_address w on w.merchant_id = u.merchant_id and w.address = u.address
  left join merchant_address m on m.merchant_id = u.merchant_id and m.address = u.address
 where w.user_id is not null or m.address is not null;

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
  join book b on b.merchant_id = u.merchant_id and b.is_open
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
   and d.{open_books}
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
-- A deposit whose block has left the chain waits for a person, unless it is credited. One that is held says so, too.
update deposit set status = 'held', cause = %(cause)s::text, decided_by = null, decided_ms = null
 where merchant_id = %(merchant_id)s::bigint and chain = %(chain)s::text and tx_hash = %(tx_hash)s::text
   and log_index = %(log_index)s::int and status in ('pending', 'dust', 'held');

-- name: hold_elsewhere
-- A deposit whose transaction is credited from another block waits for a person, unless a person has released it.
update deposit set status = 'held', cause = %(cause)s::text
 where merchant_id = %(merchant_id)s::bigint and chain = %(chain)s::text and tx_hash = %(tx_hash)s::text
   and log_index = %(log_index)s::int and status = 'pending' and decided_by is null;

-- name: hold_screened
-- A deposit that screening holds or refuses waits for a person.
update deposit set status = 'held', cause = %(cause)s::text, decided_by = null, decided_ms = null
 where merchant_id = %(merchant_id)s::bigint and chain = %(chain)s::text and tx_hash = %(tx_hash)s::text
   and log_index = %(log_index)s::int and status = 'pending'
   and {book_is_open};

-- name: clear_screened
-- A deposit that was released from screening is credited next. One that is held for another reason, too, stays held.
update deposit set status = 'pending', cause = null, next_ms = 0
 where merchant_id = %(merchant_id)s::bigint and chain = %(chain)s::text and tx_hash = %(tx_hash)s::text
   and log_index = %(log_index)s::int and status = 'held' and starts_with(cause, 'screening ')
   and {book_is_open};

-- name: is_book_open
-- Whether the merchant's book is here and open.
select {book_is_open};

-- fragment: as_seen
-- The deposit is what the person has looked at. Without a block there is nothing to compare.
(%(block)s::bigint is null
        or (block_number = %(block)s::bigint and amount = %(amount)s::bigint and cause is not distinct from %(cause)s::text))

-- name: release_held
-- A person decided that a held deposit is credited.
update deposit set status = 'pending', cause = null, next_ms = 0, decided_by = %(actor)s::text, decided_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and tx_hash = %(tx_hash)s::text and log_index = %(log_index)s::int and status = 'held'
   and {as_seen}
   and {open_books}
returning merchant_id;

-- name: drop_held
-- A person decided that a held deposit is not credited.
update deposit set status = 'dropped', decided_by = %(actor)s::text, decided_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and tx_hash = %(tx_hash)s::text and log_index = %(log_index)s::int and status = 'held'
   and {as_seen}
   and {open_books}
returning merchant_id;

-- name: read_decision
-- What became of a deposit, and who decided about it, and when.
select status, decided_by, decided_ms from deposit
 where chain = %(chain)s::text and tx_hash = %(tx_hash)s::text and log_index = %(log_index)s::int
   and {open_books};

-- name: undo_seen
-- Transfers whose blocks have left the chain, or that the final blocks do not have.
update deposit set status = 'undone'
 where chain = %(chain)s::text and status = 'seen' and block_number >= %(first)s::bigint and block_number <= %(last)s::bigint
   and {open_books}
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
           and {open_books}
         group by merchant_id, address
        having sum(amount) >= %(minimum_units)s::bigint) enough
 where d.merchant_id = enough.merchant_id and d.chain = %(chain)s::text and d.address = enough.address and d.status = 'dust';

-- name: peek_due
-- Deposits that can be credited now, the longest waiting first, and their merchants' settings. Nothing is locked: the
-- book decides.
select d.merchant_id, d.chain, d.tx_hash, d.log_index, d.address, d.amount, m.deposit_notify_url is not null, b.settings_version,
       d.block_hash, d.decided_by is not null, d.sender
  from deposit d
  join merchant m on m.merchant_id = d.merchant_id
  join book b on b.merchant_id = d.merchant_id and b.is_open
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
   and log_index = %(log_index)s::int and status = 'pending'
   and {book_is_open};
