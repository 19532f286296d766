-- The programs that run now, in home. `instances.py` runs these. All times are the database's.

-- fragment: now_ms
-- The database's clock: those of the programs may differ.
(extract(epoch from clock_timestamp()) * 1000)::bigint

-- name: note_seen
-- This program runs.
insert into instance
       (instance_id, side, version, schema_version, host, pid, started_ms, seen_ms, clock_ahead_ms)
select %(instance_id)s::uuid, %(side)s::text, %(version)s::text, %(schema_version)s::int, %(host)s::text, %(pid)s::int,
       {now_ms}, {now_ms}, %(clock_ahead_ms)s::bigint
    on conflict (instance_id) do update
   set seen_ms = excluded.seen_ms, clock_ahead_ms = excluded.clock_ahead_ms;

-- name: delete_old
-- Programs that ended without a word.
delete from instance where seen_ms < {now_ms} - %(kept_ms)s::bigint;

-- name: delete
-- This program ends.
delete from instance where instance_id = %(instance_id)s::uuid;

-- name: list_live
-- The programs that were seen a moment ago.
select side, version, schema_version, host, pid, started_ms, clock_ahead_ms
  from instance where seen_ms > {now_ms} - %(live_ms)s::bigint
 order by side, started_ms;

-- name: has_table
-- Whether the schema is new enough to know them.
select to_regclass('instance') is not null;
