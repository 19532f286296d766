-- How the platform's programs and supplies are, in home. `platform_status.py` runs these.

-- name: list_instances
-- The programs that were seen in the last day, and how long ago, by the database's clock.
select side, version, host, pid, started_ms, seen_ms, ((extract(epoch from clock_timestamp()) * 1000)::bigint - seen_ms) as silent_ms
  from instance order by side, seen_ms desc limit %(limit)s::int;

-- name: count_supplies
-- Accounts that no merchant has yet, up to a bound, and the highest range of ids that was given out.
select (select count(*) from (select from xpub_pool where merchant_id is null limit %(most)s::int) a) as accounts,
       (select max(range_no)::int from id_range) as highest_range;

-- name: read_archiver
-- When another tool last took WAL out of this PostgreSQL, and when that failed last.
select (extract(epoch from last_archived_time) * 1000)::bigint as archived_ms,
       (extract(epoch from last_failed_time) * 1000)::bigint as failed_ms
  from pg_stat_archiver;
