-- Questions of the watch to each host of a database.

-- name: read_timeline
-- The timeline that the server writes on, 8 hexadecimal digits; null on a standby. The control file knows a new timeline only
-- after a checkpoint.
select case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_lsn()), 8) end;

-- name: read_synchronous
-- Whether commits of this server wait for a standby.
select current_setting('synchronous_standby_names') <> '';
