-- kind: expand
-- Clocks: how far each program's clock is from the database's.

-- step: transaction
-- Positive: the program's clock is ahead. Null: not measured yet, or a program of the version before.
alter table instance add column if not exists clock_ahead_ms bigint;
