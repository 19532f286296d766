-- Home's record of moves of books. `book_moves.py` runs these. Times are of home's clock.

-- fragment: now_ms
-- The database's time.
(extract(epoch from clock_timestamp()) * 1000)::bigint

-- fragment: moves
-- A move, with its merchant and both cells.
select m.merchant_id, b.name, b.move_version as version, m.move_id::text as move_id, m.state, m.from_cell_id, f.name as from_cell,
       m.to_cell_id, t.name as to_cell, m.began_ms, m.changed_ms, {now_ms} as now_ms
  from merchant_move m
  join merchant b on b.merchant_id = m.merchant_id
  join cell f on f.cell_id = m.from_cell_id
  join cell t on t.cell_id = m.to_cell_id

-- name: read_place
-- Where a merchant's book is, and whether it was opened there.
select cell_id, carried_version > 0 as is_opened from merchant where merchant_id = %(merchant_id)s::bigint;

-- name: find_cell_move
-- Which of two cells is being moved itself.
select c.name from cell_move m join cell c using (cell_id)
 where m.state <> 'switched' and m.cell_id = any (%(cell_ids)s::int[]) order by c.cell_id limit 1;

-- name: begin
-- A new move, from where the book is.
insert into merchant_move (merchant_id, move_id, state, from_cell_id, to_cell_id, began_ms, changed_ms)
select merchant_id, gen_random_uuid(), 'copying', cell_id, %(to_cell_id)s::int, {now_ms}, {now_ms}
  from merchant where merchant_id = %(merchant_id)s::bigint
on conflict (merchant_id) do nothing;

-- name: read
-- The move of a book.
{moves}
 where m.merchant_id = %(merchant_id)s::bigint;

-- name: list_all
-- All moves.
{moves}
 order by m.merchant_id;

-- name: raise_version
-- The next version of a merchant's place. Whoever raised it last may go on.
update merchant set move_version = move_version + 1
 where merchant_id = %(merchant_id)s::bigint and move_version = %(version)s::bigint
returning move_version;

-- name: set_state
-- The next state of a move. The merchant's row is locked by then, or its version is compared here.
update merchant_move m
   set state = %(state)s::text, changed_ms = {now_ms},
       give_up_ms = case when %(state)s::text = 'switching' then {now_ms} + %(budget_ms)s::bigint end
  from merchant b
 where m.merchant_id = %(merchant_id)s::bigint and m.move_id = %(move_id)s::uuid and m.state = any (%(from_states)s::text[])
   and b.merchant_id = m.merchant_id and b.move_version = %(version)s::bigint;

-- name: set_cell
-- The decision: from now on the book is in its new cell. In the default cell a book has the newest settings at once.
update merchant b
   set cell_id = m.to_cell_id, carried_version = case when m.to_cell_id = 0 then b.settings_version else b.carried_version end
  from merchant_move m
 where b.merchant_id = %(merchant_id)s::bigint and b.move_version = %(version)s::bigint and b.cell_id = m.from_cell_id
   and m.merchant_id = b.merchant_id and m.move_id = %(move_id)s::uuid
returning b.settings_version;

-- name: delete
-- The move is over.
delete from merchant_move
 where merchant_id = %(merchant_id)s::bigint and move_id = %(move_id)s::uuid and state = any (%(from_states)s::text[]);

-- name: list_stalled
-- Moves with a copy that must be opened: since that is certain, or since the mover died in the switch.
{moves}
 where m.state in ('reopening', 'opening')
    or (m.state = 'switching' and m.give_up_ms < {now_ms} - %(grace_ms)s::bigint)
 order by m.merchant_id;
