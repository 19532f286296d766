-- Whether books stand still while home and all cells are read. `still_snapshots.py` runs this in home.

-- name: read_moves
-- How many steps moves of books have taken so far, and whether a book is closed between two cells now.
select (select coalesce(sum(move_version), 0)::bigint from merchant) as steps,
       exists (select from merchant_move where state in ('switching', 'reopening', 'opening')) as is_between;
