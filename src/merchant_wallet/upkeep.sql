-- What upkeep reads; what it makes and drops are whole tables, which take no parameters.

-- name: list_nonce_partitions
-- The days that the nonce table has a partition for, by the partitions' names.
select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
 where i.inhparent = 'nonce'::regclass order by c.relname;

-- name: read_day
-- The UTC day by the database's own clock, counted from the epoch.
select floor(extract(epoch from clock_timestamp()) / 86400)::bigint;
