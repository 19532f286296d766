-- What a cell says of itself, for people. `inspection.py` runs these.

-- name: count_entries
-- The open books, their entries, and the database's time.
select count(*), coalesce(sum(entry_count), 0)::bigint, (extract(epoch from statement_timestamp()) * 1000)::bigint
  from book where is_open;

-- name: read_mirror
-- When the copies of home's rates were compared last. Without a row in the default cell.
select checked_ms from reference_state;

-- name: read_server
-- The size of the schema, and how far the slowest standby is behind: null without one, or without the right to see it.
select (select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c
         where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r') as size_bytes,
       (select (extract(epoch from max(replay_lag)) * 1000)::bigint from pg_stat_replication) as standby_lag_ms;

-- name: read_fence
-- The cell's id and version, and whether it is open.
select cell_id, version, is_open from cell_state;

-- name: read_clock
-- The server's clock now, not at the start of the transaction.
select (extract(epoch from clock_timestamp()) * 1000)::bigint;

-- name: count_waiting
-- Home: the merchants of a cell, and those whose changes it does not have.
select count(*), count(*) filter (where carried_version < settings_version) from merchant where cell_id = %(cell_id)s::int;
