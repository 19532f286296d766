-- PostgreSQL's logical replication of one cell. `replication.py` runs these, on either of the two databases.

-- name: read_settings
-- Whether the server can be the source, whether the database is one of Citus, and who this is. The last: the limits with which the
-- sessions of this user begin. PostgreSQL's own copy sets none for itself, and would be ended by them.
select current_setting('wal_level'), current_setting('max_slot_wal_keep_size'),
       exists (select from pg_extension where extname = 'citus'), current_user,
       (select string_agg(name || ' = ' || reset_val || ' ms', ', ' order by name) from pg_settings
         where name in ('statement_timeout', 'transaction_timeout') and reset_val <> '0');

-- name: list_tables
-- The tables of the schema that are copied: all that say something about books. Partitions follow their table.
select c.relname from pg_class c
 where c.relnamespace = %(schema)s::text::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
   and c.relname <> all (%(without)s::text[])
 order by c.relname;

-- name: find_publication
-- Whether the publication exists.
select from pg_publication where pubname = %(name)s::text;

-- name: list_published
-- The tables of the publication. `book` is first, as in every group: who has it locked keeps new groups out.
select n.nspname, c.relname
  from pg_publication p join pg_publication_rel r on r.prpubid = p.oid
  join pg_class c on c.oid = r.prrelid join pg_namespace n on n.oid = c.relnamespace
 where p.pubname = %(name)s::text
 order by c.relname <> 'book', c.relname;

-- name: find_slot
-- Whether the slot exists, and the process that reads from it.
select active_pid from pg_replication_slots where slot_name = %(name)s::text;

-- name: create_slot
-- The slot keeps what the new place has not applied yet.
select pg_create_logical_replication_slot(%(name)s::text, 'pgoutput');

-- name: end_reader
-- Ends the process that reads from the slot.
select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = %(name)s::text and active_pid is not null;

-- name: drop_slot
-- Drops the slot.
select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %(name)s::text;

-- name: read_position
-- The end of what the source has committed.
select pg_current_wal_flush_lsn()::text;

-- name: read_lag
-- How many bytes the new place has yet to apply and to flush up to a position, or up to now. No row without the slot.
select pg_wal_lsn_diff(coalesce(%(position)s::pg_lsn, pg_current_wal_flush_lsn()), confirmed_flush_lsn)::bigint
  from pg_replication_slots where slot_name = %(name)s::text;

-- name: find_subscription
-- Whether the subscription exists, and is enabled.
select subenabled from pg_subscription
 where subname = %(name)s::text and subdbid = (select oid from pg_database where datname = current_database());

-- name: count_tables
-- How many tables the subscription has, and how many of them are copied.
select count(*), count(*) filter (where r.srsubstate = 'r')
  from pg_subscription s join pg_subscription_rel r on r.srsubid = s.oid
 where s.subname = %(name)s::text and s.subdbid = (select oid from pg_database where datname = current_database());

-- name: read_rights
-- Whether this user may read the log of changes, and see and end the sessions of others. At Amazon RDS a role stands for REPLICATION.
select rolsuper or ((rolreplication or exists (select from pg_roles r where r.rolname = 'rds_replication' and pg_has_role(r.oid, 'usage')))
       and pg_has_role('pg_read_all_stats', 'usage') and pg_has_role('pg_signal_backend', 'usage'))
  from pg_roles where rolname = current_user;

-- name: read_new_rights
-- Whether this user may make a schema and a subscription. PostgreSQL 15 lets only superusers make subscriptions, and what Amazon RDS
-- and Cloud SQL have instead of them.
select has_database_privilege(current_database(), 'create')
       and (rolsuper or exists (select from pg_roles r where r.rolname in ('pg_create_subscription', 'rds_superuser', 'cloudsqlsuperuser') and pg_has_role(r.oid, 'usage')))
  from pg_roles where rolname = current_user;

-- name: count_errors
-- How often applying or copying has failed. The server's log says why.
select coalesce(sum(t.apply_error_count + t.sync_error_count), 0)::bigint
  from pg_stat_subscription_stats t where t.subname = %(name)s::text;

-- name: read_version
-- The version of PostgreSQL.
select current_setting('server_version_num')::int / 10000;
