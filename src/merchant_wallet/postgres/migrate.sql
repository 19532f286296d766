-- Which migrations a schema has, and the locks of the one who applies them. `migrate.py` runs these.

-- name: has_table
-- Whether there is a table of migrations.
select to_regclass('schema_migration') is not null;

-- name: find_hidden
-- Who this is, if the schema has tables that this role can't see: without USAGE a schema is left out of the search path.
select current_user from pg_class
 where relnamespace = to_regnamespace(quote_ident(%(schema)s::text)) and relname = 'schema_migration';

-- name: may_create
-- Who this is, whether they may create tables here, and whether there are tables already.
select current_user, has_schema_privilege(to_regnamespace(quote_ident(%(schema)s::text)), 'create'), to_regclass('schema_migration') is not null;

-- name: create_table
-- One row for each applied migration. By the kind an older program knows whether it can run on what a newer one applied.
create table if not exists schema_migration (
    version int primary key,
    name text not null,
    checksum text not null,
    applied_ms bigint not null,
    kind text not null
);

-- name: list_applied
-- What is applied. A table from before the first release has the kind `offline`, or none.
select version, checksum, coalesce(to_jsonb(m) ->> 'kind', 'offline') from schema_migration m;

-- name: add_applied
-- One migration is done.
insert into schema_migration (version, name, checksum, applied_ms, kind)
values (%(version)s::int, %(name)s::text, %(checksum)s::text, %(now_ms)s::bigint, %(kind)s::text);

-- name: lock_creation
-- Until the end of the transaction, one process looks for the table and creates it.
select pg_advisory_xact_lock(hashtext('schema_migration'));

-- name: try_lock
-- Whether this session is the one that migrates the schema now.
select pg_try_advisory_lock(hashtext('schema_migration'), hashtext(%(schema)s::text));

-- name: unlock
-- Another process may migrate the schema.
select pg_advisory_unlock(hashtext('schema_migration'), hashtext(%(schema)s::text));

-- name: is_invalid
-- Whether an index of this schema was begun and never finished.
select exists (select from pg_index where indexrelid = to_regclass(%(name)s::text) and not indisvalid);

-- name: list_long
-- Who has been in a transaction for longer than a second.
select pid, coalesce(nullif(application_name, ''), usename, ''), extract(epoch from clock_timestamp() - xact_start)
  from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and xact_start < clock_timestamp() - interval '1 s'
 order by xact_start limit 3;

-- name: list_unordered
-- The texts of this schema whose beginnings are searched for, and those that are joined with them, as far as they have the order of a
-- database that does not compare bytes: table, column and type. The locales of the provider builtin compare bytes, and so do these of
-- the C library.
select c.relname, a.attname, format_type(a.atttypid, a.atttypmod)
  from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_collation o on o.oid = a.attcollation
 where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and not a.attisdropped
   and o.collname = 'default'
   and (a.attname ~ '^((.*_)?tx_hash|mc_order_id)$' or (c.relname, a.attname) = ('withdrawal', 'address'))
   and exists (select from pg_database d where d.datname = current_database() and d.datlocprovider <> 'b'
                  and (d.datlocprovider <> 'c' or d.datcollate not in ('C', 'POSIX', 'C.UTF-8', 'C.utf8')))
 order by c.relname, a.attname;
