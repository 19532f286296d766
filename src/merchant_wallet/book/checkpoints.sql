-- What checkpoints are made of and compared with.

-- name: read_heads
-- The present head of every book that has entries; a book's row changes only together with its journal.
select merchant_id, id_range, id_counter, entry_count, head_hash from book where entry_count > 0 order by merchant_id;

-- name: read_ranges
-- The ranges of ids of one book, which tell an entry's place in the journal from its id.
select range_no from id_range where merchant_id = %(merchant_id)s order by range_no;

-- name: read_hashes
-- The hashes that the entries named by checkpoints have now.
select entry_id, hash from entry where merchant_id = %(merchant_id)s and entry_id = any(%(entry_ids)s);
