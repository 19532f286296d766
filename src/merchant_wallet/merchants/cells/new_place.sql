-- Prepares and removes a copy of a cell. `new_place.py` runs these on the owner's connection.

-- name: read_mark
-- Whether the schema exists, and which move made it.
select obj_description(oid, 'pg_namespace') from pg_namespace where nspname = %(schema)s::text;

-- name: has_state
-- Whether the schema has the row that says whether the copy is open.
select to_regclass('cell_state') is not null;

-- name: lock_state
-- Whether the copy is open. Nobody opens it meanwhile.
update cell_state set is_open = is_open returning is_open;

-- name: list_roles
-- The roles that have rights in the schema.
select side, role_name from side_role order by side;

-- name: list_days
-- The first and the last UTC day that the table of nonces has, and the database's day.
select coalesce(min(substr(c.relname, 7)::int), 0), coalesce(max(substr(c.relname, 7)::int), 0),
       floor(extract(epoch from clock_timestamp()) / 86400)::int
  from pg_inherits i join pg_class c on c.oid = i.inhrelid
 where i.inhparent = 'nonce'::regclass and c.relname ~ '^nonce_[0-9]+$';

-- name: add_nonce_days
-- Creates the missing partitions from one day to another.
select add_nonce_days(%(first_day)s::int, %(last_day)s::int);
