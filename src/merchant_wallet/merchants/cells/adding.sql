-- Adds a cell. `adding.py` runs these on the owner's connections.

-- name: lock_cells
-- One command at a time adds cells. The lock is the session's: it is held over many transactions.
select pg_advisory_lock(hashtext('cell'));

-- name: unlock_cells
-- The next command may add a cell.
select pg_advisory_unlock(hashtext('cell'));

-- name: find_cell
-- A cell of this name.
select cell_id, schema_name, address, admin_address, state from cell where name = %(name)s::text;

-- name: read_next_id
-- The id of the next cell.
select max(cell_id) + 1 from cell;

-- name: insert_cell
-- The cell is there, empty and open: from now on merchants may be placed in it.
insert into cell (cell_id, name, schema_name, address, admin_address, added_ms)
values (%(cell_id)s::int, %(name)s::text, %(schema)s::text, %(address)s::text, %(admin_address)s::text, %(now_ms)s::bigint);

-- name: read_server
-- What must be right at the server, its clock, and what the schema is: null if it is missing, its comment otherwise, and how many
-- tables it has.
select current_setting('server_version_num')::int as version, pg_is_in_recovery() as is_standby,
       (extract(epoch from clock_timestamp()) * 1000)::bigint as clock_ms, pg_encoding_to_char(d.encoding) as encoding,
       has_database_privilege(current_database(), 'create') as may_create, current_user as role, current_database() as database,
       n.oid is not null as exists, coalesce(obj_description(n.oid, 'pg_namespace'), '') as mark,
       (select count(*) from pg_class c where c.relnamespace = n.oid) as relations
  from pg_database d left join pg_namespace n on n.nspname = %(schema)s::text
 where d.datname = current_database();

-- name: begin_state
-- What the cell is. A command that was interrupted may have written it under another id.
insert into cell_state (cell_id, version, is_open) values (%(cell_id)s::int, 1, true);

-- name: clear_state
-- Nothing was placed in a cell that home does not know.
delete from cell_state;

-- name: list_roles
-- The roles of both sides, as they were granted in home.
select side, role_name from side_role order by side;
