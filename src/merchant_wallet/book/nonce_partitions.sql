-- Partitions of the nonce table. They are made and dropped by functions, since only the tables' owner may.

-- name: list_nonce_partitions
-- The days that the nonce table has a partition for, by the partitions' names.
select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
 where i.inhparent = 'nonce'::regclass order by c.relname;

-- name: read_day
-- The UTC day by the database's own clock, counted from the epoch.
select floor(extract(epoch from clock_timestamp()) / 86400)::bigint;

-- name: add_nonce_days
-- The missing partitions from one day to another; gives the days that are new.
select add_nonce_days(%(first_day)s::int, %(last_day)s::int);

-- name: drop_nonce_day
-- A past day's nonces go as a whole.
select drop_nonce_day(%(day)s::int);
