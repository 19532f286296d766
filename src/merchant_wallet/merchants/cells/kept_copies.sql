-- Which copies of books people chose. `kept_copies.py` runs these on home.

-- name: list_kept
-- The cells that were chosen.
select k.merchant_id, c.name from kept_copy k join cell c using (cell_id) order by k.merchant_id;

-- name: lock_merchant
-- Lets one person at a time choose for a merchant.
select merchant_id from merchant where merchant_id = %(merchant_id)s::bigint for no key update;

-- name: find_cell
-- A cell by its name.
select cell_id from cell where name = %(cell)s::text and state <> 'retired';

-- name: write_kept
-- The cell whose copy is kept.
insert into kept_copy (merchant_id, cell_id, chosen_ms)
select %(merchant_id)s::bigint, cell_id, (extract(epoch from clock_timestamp()) * 1000)::bigint
  from cell where name = %(cell)s::text
on conflict (merchant_id) do update set cell_id = excluded.cell_id, chosen_ms = excluded.chosen_ms;

-- name: drop_kept
-- The choices were used, or were not needed.
delete from kept_copy;
