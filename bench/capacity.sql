-- What the measurement of capacity asks the database itself.

-- name: read_wal
-- The WAL that was written so far, in bytes.
select pg_current_wal_insert_lsn() - '0/0'::pg_lsn;

-- name: read_head
-- The last entry of the only book.
select entry_id, hash from entry order by merchant_id desc, entry_id desc limit 1;

-- name: tidy
-- As autovacuum does later.
vacuum (analyze);

-- name: read_sizes
-- What grows with the entries, tables and indexes apart.
select c.relname, pg_relation_size(c.oid)
  from pg_class c
 where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'i')
   and (c.relname ~ '^(entry|posting|archived_order)' or c.relname ~ '^nonce_[0-9]+')
   and pg_relation_size(c.oid) > 1048576
 order by c.relname;
