-- What back-ups ask the server. All run as the role of back-ups, which may replicate and owns nothing.

-- name: describe_cluster
-- The cluster's identity, and about how large its files are: what a base back-up reads, without WAL.
select (select system_identifier from pg_control_system()), sum(pg_database_size(oid))::bigint from pg_database;

-- name: keep_wal
-- A slot of this session alone: the WAL of a base back-up's time stays until it is in the back-up.
select pg_create_physical_replication_slot(%(slot)s, true, true);

-- name: read_flushed
-- Up to where the WAL is on the disk, on which timeline, and the cluster's identity.
select pg_current_wal_flush_lsn() - '0/0'::pg_lsn, pg_walfile_name(pg_current_wal_flush_lsn()),
       (select system_identifier from pg_control_system())::text;

-- name: read_slot
-- From where on the slot keeps WAL. Null, if it was kept too long and is gone.
select restart_lsn - '0/0'::pg_lsn, wal_status from pg_replication_slots where slot_name = %(slot)s;

-- name: create_slot
-- Keeps all WAL from the last checkpoint on.
select pg_create_physical_replication_slot(%(slot)s, true);

-- name: drop_slot
-- Without a store nobody would ever release the WAL.
select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %(slot)s;

-- name: advance_slot
-- WAL before this is stored: PostgreSQL may remove it.
select pg_replication_slot_advance(%(slot)s, %(position)s::pg_lsn);

-- name: tell
-- How much is stored is told by the name of the session: a row would be new WAL each time.
select set_config('application_name', %(told)s, false);
