-- What `doctor` asks the database itself.

-- name: read_clock
-- The server's own wall clock in milliseconds, not the moment at which the transaction began.
select (extract(epoch from clock_timestamp()) * 1000)::bigint;
