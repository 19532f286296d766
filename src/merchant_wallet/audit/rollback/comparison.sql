-- What the last checkpoints are compared with.

-- name: read_books
-- For hundreds of books at once: the number of entries now, and the current hash of the entry that the checkpoint saw last.
select c.merchant_id, b.entry_count, e.hash
  from unnest(%(merchant_ids)s::bigint[], %(entry_ids)s::bigint[]) c (merchant_id, entry_id)
  left join book b on b.merchant_id = c.merchant_id
  left join lateral (select hash from entry where merchant_id = c.merchant_id and entry_id = c.entry_id) e on true;
