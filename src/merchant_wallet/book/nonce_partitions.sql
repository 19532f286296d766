-- Partitions of the nonce table. Functions create and drop them, since only the tables' owner may.

-- name: list_nonce_partitions
-- The days that have a partition, by the partitions' names.
select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
 where i.inhparent = 'nonce'::regclass order by c.relname;

-- name: read_day
-- The UTC day of the database's clock, counted from the epoch.
select floor(extract(epoch from clock_timestamp()) / 86400)::bigint;

-- name: add_nonce_days
-- Creates the missing partitions from one day to another, and returns the new days.
select add_nonce_days(%(first_day)s::int, %(last_day)s::int);

-- name: drop_nonce_day
-- Drops all nonces of a past day.
select drop_nonce_day(%(day)s::int);
