-- Which apart cells were compared with their checkpoints. `compared_cells.py` runs these on home.

-- name: read_clock
-- The server's time.
select (extract(epoch from clock_timestamp()) * 1000)::bigint;

-- name: note_compared
-- All books of these cells were compared. A process that is late changes nothing.
update cell set compared_ms = %(began_ms)s::bigint
 where cell_id = any (%(cell_ids)s::int[]) and compared_ms < %(began_ms)s::bigint;

-- name: is_compared
-- A row if a cell was compared since a time.
select 1 from cell where cell_id = %(cell_id)s::int and compared_ms >= %(since_ms)s::bigint;
