-- In which cells books are that are compared. `reached_cells.py` runs these on home.

-- name: list_apart
-- Those of these merchants whose books are in apart cells, with the cells.
select merchant_id, cell_id from merchant where merchant_id = any (%(merchant_ids)s::bigint[]) and cell_id <> 0;
