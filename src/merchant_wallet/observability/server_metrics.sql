-- What the database's server says of its archiving and its standbys. `server_metrics.py` runs these.

-- name: read_archiver
-- How long archiving has failed. Nothing where nothing was ever archived, or tried.
select case when last_failed_time > coalesce(last_archived_time, '-infinity')
            then extract(epoch from clock_timestamp() - coalesce(last_archived_time, stats_reset, last_failed_time)) else 0
       end::float8
  from pg_stat_archiver where last_archived_time is not null or last_failed_time is not null;

-- name: list_standbys
-- The standbys that replay WAL, and how far they are behind. Without `pg_monitor` the server does not say. An idle standby has
-- no lag.
select application_name, max(coalesce(extract(epoch from replay_lag), 0))::float8
  from pg_stat_replication r
 where replay_lsn is not null
   and not exists (select from pg_replication_slots s where s.active_pid = r.pid and s.slot_type = 'logical')
 group by application_name;
