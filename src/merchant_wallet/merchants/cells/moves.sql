-- Home's record of moves of cells. `moves.py` runs these. Times are of home's clock.

-- fragment: now_ms
-- The database's time.
(extract(epoch from clock_timestamp()) * 1000)::bigint

-- fragment: columns
-- A move, with its cell.
       c.cell_id, c.name, c.schema_name, c.version, m.move_id::text as move_id, m.state, m.address, m.old_address, m.began_ms

-- name: find_cell
-- A cell by its name, and whether it can be moved.
select cell_id, state from cell where name = %(name)s::text;

-- name: plan
-- A move that home does not have yet.
select cell_id, name, schema_name, version, '' as move_id, 'planned' as state, %(address)s::text as address,
       address as old_address, 0::bigint as began_ms
  from cell where cell_id = %(cell_id)s::int;

-- name: lock_moves
-- One move is begun at a time, of a cell or of a book. The lock ends with the transaction.
select pg_advisory_xact_lock(hashtext('begin_move'));

-- name: find_book_move
-- A book that is being moved to or from a cell. Its copy there is not whole, so the cell can't be compared.
select merchant_id from merchant_move
 where state <> 'switched' and (from_cell_id = %(cell_id)s::int or to_cell_id = %(cell_id)s::int) limit 1;

-- name: begin
-- A new move.
insert into cell_move (cell_id, move_id, state, address, old_address, began_ms, changed_ms)
select cell_id, gen_random_uuid(), 'copying', %(address)s::text, address, {now_ms}, {now_ms}
  from cell where cell_id = %(cell_id)s::int
on conflict (cell_id) do nothing;

-- name: read
-- The move of a cell.
select {columns}
  from cell_move m join cell c using (cell_id) where m.cell_id = %(cell_id)s::int;

-- name: raise_version
-- The next version of a cell. Whoever raised it last may go on.
update cell set version = version + 1 where cell_id = %(cell_id)s::int and version = %(version)s::bigint returning version;

-- name: set_state
-- The next state of a move. The cell's row is locked by then, or its version is compared here.
update cell_move m set state = %(state)s::text, changed_ms = {now_ms}
  from cell c
 where m.cell_id = %(cell_id)s::int and m.move_id = %(move_id)s::uuid and m.state = any (%(from_states)s::text[])
   and c.cell_id = m.cell_id and c.version = %(version)s::bigint;

-- name: set_address
-- The decision: from now on the cell is at its new place.
update cell c set address = m.address, admin_address = null
  from cell_move m
 where c.cell_id = %(cell_id)s::int and c.version = %(version)s::bigint and m.cell_id = c.cell_id
   and m.move_id = %(move_id)s::uuid and m.state = 'switching';

-- name: delete
-- The move is over.
delete from cell_move
 where cell_id = %(cell_id)s::int and move_id = %(move_id)s::uuid and state = any (%(from_states)s::text[]);

-- name: list_all
-- All moves, and how long ago the last step was.
select {columns}, {now_ms} - m.changed_ms as age_ms
  from cell_move m join cell c using (cell_id) order by m.cell_id;
