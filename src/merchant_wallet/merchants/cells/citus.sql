-- Cells that Citus places. `citus.py` runs the first on the coordinator, the others on home.

-- name: has_citus
-- Whether this database has the extension.
select exists (select 1 from pg_extension where extname = 'citus');

-- name: read_place
-- Where a cell is that Citus places.
select cell_id, schema_name, address, admin_address from cell where name = %(name)s::text and admin_address is not null;

-- name: set_address
-- The node that has the cell now. No row if home knows it.
update cell set address = %(address)s::text, version = version + 1
 where cell_id = %(cell_id)s::int and address is distinct from %(address)s::text and admin_address is not null;

-- name: read_version
-- A cell's version.
select version from cell where cell_id = %(cell_id)s::int;
