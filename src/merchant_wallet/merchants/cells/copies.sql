-- Compares the two copies of a cell. `copies.py` runs these on either.

-- name: read_digest
-- All books in one line: equal on both sides only if each has the same last entry and the same version, and of each the same months
-- are in the archive.
select count(*), coalesce(sum(entry_count), 0)::bigint,
       md5(coalesce(string_agg(concat_ws(':', merchant_id, id_range, id_counter, version, encode(head_hash, 'hex')), ',' order by merchant_id), '')),
       (select coalesce(sum(hashtextextended(concat_ws(':', merchant_id, month, removed_id, encode(digest, 'hex')), 0)), 0)::text
          from archived_month)
  from book;

-- name: list_heads
-- The head of every book. A closed one is the old copy of a book that is in another cell now.
select merchant_id, entry_count, head_hash, is_open from book order by merchant_id;
