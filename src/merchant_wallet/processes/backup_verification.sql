-- What a copy of the database is compared by.

-- name: read_heads
-- Each open book of this cell: how many entries it has, and its clock at the newest. A copy that was left behind by a move is none.
select merchant_id, entry_count, last_ms from book where entry_count > 0 and is_open;
