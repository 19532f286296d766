-- Marks that show whether home was rolled back without its cells. `home_marks.py` runs these.

-- name: list_marks
-- The numbers that home has told its cells.
select cell_id, name, marked_no from cell where cell_id > 0;

-- name: raise_mark
-- The next number for a cell.
update cell set marked_no = marked_no + 1 where cell_id = %(cell_id)s::int returning marked_no;

-- name: read_seen
-- The highest number that a cell was told.
select home_no from cell_state;

-- name: write_seen
-- A cell takes on higher numbers only.
update cell_state set home_no = %(number)s::bigint where home_no < %(number)s::bigint;
