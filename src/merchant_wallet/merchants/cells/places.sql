-- Where cells are, if home was restored to before they moved. `places.py` runs these.

-- name: read_state
-- What a copy of a cell says of itself.
select cell_id, version, is_open from cell_state;

-- name: list_cells
-- The apart cells that home knows, or one, and where a move brings them.
select c.cell_id, c.name, c.schema_name, c.address, c.version, m.address as move_address
  from cell c left join cell_move m using (cell_id)
 where c.cell_id > 0 and c.state <> 'retired' and (%(cell_id)s::int is null or c.cell_id = %(cell_id)s::int)
 order by c.cell_id;

-- name: write_place
-- Where a cell is, and which version it has there.
update cell set version = %(version)s::bigint, address = %(address)s::text,
       admin_address = case when address is not distinct from %(address)s::text then admin_address end
 where cell_id = %(cell_id)s::int;

-- name: write_move
-- The record of the move that home has lost: the cell is at its new place, and the old copy was not dropped.
insert into cell_move (cell_id, move_id, state, address, old_address, began_ms, changed_ms)
values (%(cell_id)s::int, gen_random_uuid(), 'switched', %(address)s::text, %(old_address)s::text,
        (extract(epoch from clock_timestamp()) * 1000)::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint)
on conflict (cell_id) do update
   set state = excluded.state, address = excluded.address, old_address = excluded.old_address, changed_ms = excluded.changed_ms;

-- name: add_cell
-- A cell that home does not know. No row if home has given its number or its name to another one.
insert into cell (cell_id, name, schema_name, address, version, added_ms)
values (%(cell_id)s::int, %(name)s::text, %(schema)s::text, %(address)s::text, %(version)s::bigint, %(now_ms)s::bigint)
on conflict do nothing;
