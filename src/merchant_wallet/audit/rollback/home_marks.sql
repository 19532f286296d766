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

-- name: list_copies
-- The books of a cell, closed ones too, and the last step of a move that each has taken on.
select merchant_id, move_version from book order by merchant_id;

-- name: list_moved
-- Where home says that books are which have ever moved.
select merchant_id, cell_id, move_version from merchant where move_version > 0 order by merchant_id;

-- name: find_left
-- A book of these that is open in this cell, and was closed here before home decided for another cell.
select b.merchant_id
  from unnest(%(merchant_ids)s::bigint[], %(cell_ids)s::int[], %(move_versions)s::bigint[]) m (merchant_id, cell_id, move_version)
  join book b on b.merchant_id = m.merchant_id
 where m.cell_id <> %(cell_id)s::int and b.is_open and b.move_version <= m.move_version
 order by b.merchant_id limit 1;

-- name: find_ahead
-- A merchant of these that home does not know, or a move of its book.
select u.merchant_id, m.merchant_id is not null as is_known
  from unnest(%(merchant_ids)s::bigint[], %(move_versions)s::bigint[]) u (merchant_id, move_version)
  left join merchant m on m.merchant_id = u.merchant_id
 where m.merchant_id is null or m.move_version < u.move_version
 order by u.merchant_id limit 1;
