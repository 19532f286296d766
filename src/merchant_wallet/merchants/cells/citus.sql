-- Cells that Citus places. `citus.py` runs the first on the coordinator, `read_copy` on a node, the others on home.

-- name: has_citus
-- Whether this database has the extension.
select exists (select 1 from pg_extension where extname = 'citus');

-- name: read_copy
-- Which cell a node has, and whether it is open.
select cell_id, version, is_open from cell_state;

-- name: read_place
-- Where a cell is that Citus places.
select cell_id, name, schema_name, address, version, admin_address from cell
 where name = %(name)s::text and admin_address is not null;

-- name: follow
-- The node that has the cell now. False if somebody else has changed the cell since this version.
select follow_cell(%(cell_id)s::int, %(version)s::bigint, %(address)s::text);

-- name: note_unfollowed
-- Why the service does not use the node that Citus names. It stays known since when.
update cell
   set unfollowed_cause = %(cause)s::text,
       unfollowed_ms = coalesce(unfollowed_ms, (extract(epoch from clock_timestamp()) * 1000)::bigint)
 where cell_id = %(cell_id)s::int and version = %(version)s::bigint and unfollowed_cause is distinct from %(cause)s::text;

-- name: note_followed
-- The service uses the node that Citus names.
update cell set unfollowed_cause = null, unfollowed_ms = null where cell_id = %(cell_id)s::int and unfollowed_ms is not null;

-- name: list_unfollowed
-- The cells that are not where Citus says, and why.
select cell_id, unfollowed_cause from cell where unfollowed_cause is not null and admin_address is not null;
