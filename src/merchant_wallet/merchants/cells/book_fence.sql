-- Closes a copy of a book and opens it, and waits for its writers. `book_fence.py` runs these on a cell's connection.

-- name: set_open
-- A copy takes on higher numbers of steps only. So somebody who is late changes nothing. The new version of the book lets no batch
-- through that was judged before.
update book set is_open = %(is_open)s::boolean, move_version = %(move_version)s::bigint, version = %(version)s::uuid
 where merchant_id = %(merchant_id)s::bigint and move_version < %(move_version)s::bigint
returning entry_count;

-- name: read_state
-- Whether a copy is here, and open.
select is_open, move_version from book where merchant_id = %(merchant_id)s::bigint;

-- name: take_up_copy
-- From now on the mover with this number alone writes to the closed copy.
update book set move_version = %(move_version)s::bigint
 where merchant_id = %(merchant_id)s::bigint and move_version <= %(move_version)s::bigint and not is_open
returning entry_count;

-- name: lock_copy
-- The mover still has the closed copy. Nobody else takes it up during the transaction.
update book set move_version = move_version
 where merchant_id = %(merchant_id)s::bigint and move_version = %(move_version)s::bigint and not is_open
returning entry_count;

-- name: write_settings_version
-- A closed book takes on the newest settings when it moves to the default cell.
update book set settings_version = %(settings_version)s::bigint
 where merchant_id = %(merchant_id)s::bigint and not is_open;

-- name: list_writers
-- The transactions that hold locks for writing on any table of the cell. A statement takes its lock before its snapshot.
select distinct virtualtransaction from pg_locks
 where locktype = 'relation' and mode = 'RowExclusiveLock' and granted and pid <> pg_backend_pid()
   and database = (select oid from pg_database where datname = current_database())
   and relation in (select oid from pg_class where relnamespace = current_schema()::regnamespace);

-- name: count_writers
-- Those of these transactions that have not ended.
select count(distinct virtualtransaction) from pg_locks where virtualtransaction = any (%(writers)s::text[]);
