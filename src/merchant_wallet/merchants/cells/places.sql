-- Where cells are, if home was restored to before they moved. `places.py` runs these.

-- name: read_state
-- What a copy of a cell says of itself, and which server, database and schema it is.
select concat_ws(' ', extract(epoch from pg_postmaster_start_time()), d.oid, current_schema()::regnamespace::oid), s.cell_id, s.version, s.is_open
  from cell_state s, pg_database d where d.datname = current_database();

-- name: list_cells
-- The apart cells that home knows, or one, and where a move brings them.
select c.cell_id, c.name, c.schema_name, c.address, c.version, m.address as move_address
  from cell c left join cell_move m using (cell_id)
 where c.cell_id > 0 and c.state <> 'retired' and (%(cell_id)s::int is null or c.cell_id = %(cell_id)s::int)
 order by c.cell_id;

-- name: list_heads
-- The newest entry of each book of a copy of a cell.
select b.merchant_id, e.entry_id, e.hash
  from book b cross join lateral (
       select entry_id, hash from entry where merchant_id = b.merchant_id order by entry_id desc limit 1) e;

-- name: find_unknown
-- The books of those of these entries that a copy of a cell neither has nor had before they went to the archive, and whether it has
-- these books at all.
select u.merchant_id, exists (select from book b where b.merchant_id = u.merchant_id) as has_book
  from unnest(%(merchant_ids)s::bigint[], %(entry_ids)s::bigint[], %(hashes)s::bytea[]) u (merchant_id, entry_id, hash)
  left join entry e on e.merchant_id = u.merchant_id and e.entry_id = u.entry_id
 where e.hash is distinct from u.hash
   and u.entry_id > coalesce((select max(removed_id) from archived_month a where a.merchant_id = u.merchant_id), 0)
 order by u.merchant_id;

-- name: list_known
-- Those of these merchants that home knows.
select merchant_id from merchant where merchant_id = any (%(merchant_ids)s::bigint[]);

-- name: list_strangers
-- The service's users with sessions in this database which this user may neither see nor end.
select distinct usename from pg_stat_activity
 where datname = current_database() and usename in (select role_name from side_role) and not pg_has_role(usesysid, 'usage')
   and not (pg_has_role('pg_read_all_stats', 'usage') and pg_has_role('pg_signal_backend', 'usage'))
 order by 1;

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
