-- What checkpoints are made from and compared with.

-- name: read_heads
-- The current head of every book that has entries. A book's row changes only together with its journal.
select merchant_id, id_range, id_counter, entry_count, head_hash from book where entry_count > 0 and is_open order by merchant_id;

-- name: read_hashes
-- The current hashes of the entries that checkpoints name.
select entry_id, hash from entry where merchant_id = %(merchant_id)s and entry_id = any(%(entry_ids)s);
