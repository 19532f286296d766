-- Closes a copy of a cell for the service and opens it. `fence.py` runs these on the cell's connection.

-- name: begin_state
-- The state of a new copy.
insert into cell_state (cell_id, version, is_open) values (%(cell_id)s::int, %(version)s::bigint, false)
on conflict (cell_id) do nothing;

-- name: read_comment
-- The comment on the schema of this connection.
select obj_description(current_schema()::regnamespace, 'pg_namespace');

-- name: set_state
-- A copy takes on higher versions only. So somebody who is late changes nothing.
update cell_state set version = %(version)s::bigint, is_open = %(is_open)s::boolean
 where cell_id = %(cell_id)s::int and version < %(version)s::bigint;

-- name: raise_version
-- The version of an open copy. A closed one stays closed.
update cell_state set version = %(version)s::bigint
 where cell_id = %(cell_id)s::int and version < %(version)s::bigint and is_open;

-- name: read_clock
-- The database's time.
select clock_timestamp();

-- name: count_busy
-- The sessions of this name that are in a transaction.
select count(*) from pg_stat_activity
 where datname = current_database() and application_name = left(%(name)s::text, 63) and state <> 'idle';

-- name: list_writers
-- Sessions whose open transactions have written in the schema, and what they call themselves.
select distinct l.pid, coalesce(nullif(a.application_name, ''), a.usename, '')
  from pg_locks l join pg_class c on c.oid = l.relation left join pg_stat_activity a on a.pid = l.pid
 where l.locktype = 'relation' and l.granted and l.pid <> pg_backend_pid()
   and l.database = (select oid from pg_database where datname = current_database())
   and l.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
   and c.relnamespace = to_regnamespace(%(schema)s::text) and c.relkind in ('r', 'p')
 order by l.pid;

-- name: end_sessions
-- Ends the service's sessions that were open at a time. Returns those that are still there. A session that began later found the
-- copy closed when it looked. A name of a session has at most 63 bytes.
select pid, pg_terminate_backend(pid) from pg_stat_activity
 where datname = current_database() and backend_start <= %(at)s::timestamptz and pid <> pg_backend_pid()
   and application_name = any (select left(name, 63) from unnest(%(names)s::text[]) name);
