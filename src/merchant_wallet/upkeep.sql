-- What upkeep reads; what it makes and drops are whole tables, which take no parameters.

-- name: list_nonce_partitions
-- The days that the nonce table has a partition for, by the partitions' names.
select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
 where i.inhparent = 'nonce'::regclass order by c.relname;
