-- The directory of cells in home, and the state of one cell.

-- name: list_cells
-- The cells that may be used, the default cell first. While a move switches, its cell is closed.
select c.cell_id, c.name, c.schema_name, c.address, c.version,
       c.state <> 'closed' and coalesce(m.state not in ('switching', 'reopening'), true) as is_open, c.admin_address
  from cell c left join cell_move m using (cell_id) where c.state <> 'retired' order by c.cell_id;

-- name: find_cells
-- The cells of the books of these merchants.
select merchant_id, cell_id from merchant where merchant_id = any(%(merchant_ids)s::bigint[]);

-- name: read_state
-- What the cell says of itself, for a new connection: whether it is the cell that home means, and has the tables of this program.
select s.cell_id, s.version, s.is_open, coalesce((select max(version) from schema_migration), 0) as migration from cell_state s;

-- name: choose_plans
-- With the extension Citus the session's plans are no longer forced to be generic. Without it nothing changes.
select set_config('plan_cache_mode', 'auto', false) from pg_extension where extname = 'citus';
