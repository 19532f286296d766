-- Where new merchants go. `placement.py` runs these on home.

-- name: find_open_cell
-- The cell of this name, if merchants may be placed there.
select cell_id, state from cell where name = %(name)s::text;

-- name: find_emptiest
-- The open cell with the fewest merchants.
select c.cell_id from cell c
 where c.state = 'open'
 order by (select count(*) from merchant m where m.cell_id = c.cell_id), c.cell_id limit 1;

-- name: find_apart
-- The apart cell of a merchant's book. No row if the book is in the default cell.
select cell_id from merchant where merchant_id = %(merchant_id)s::bigint and cell_id <> 0;

-- name: count_merchants
-- All cells, with their merchants.
select c.cell_id, c.name, c.schema_name, c.address, c.state, c.version, c.added_ms, c.drained_ms,
       (select count(*) from merchant m where m.cell_id = c.cell_id) as merchants
  from cell c order by c.cell_id;

-- name: write_state
-- Opens a cell for new merchants, or stops that. No row if it is moved, closed or has that state already.
update cell set state = %(state)s::text, drained_ms = case when %(state)s::text = 'draining' then %(now_ms)s::bigint end
 where name = %(name)s::text and state in ('open', 'draining') and state <> %(state)s::text
returning cell_id;
