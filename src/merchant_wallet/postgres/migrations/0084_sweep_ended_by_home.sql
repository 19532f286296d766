-- kind: expand
-- Who ended a sweep by hand, and the failed sweeps that nobody has ended: they wait in the inbox.

-- step: transaction
-- Null: a worker ended it.
alter table sweep add column if not exists ended_by text;
-- squawk-ignore ban-drop-constraint
alter table sweep drop constraint if exists sweep_ended_by;
alter table sweep add constraint sweep_ended_by check (ended_by is null or (ended_by <> '' and step = 'failed')) not valid;

-- step: transaction
update sweep set ended_by = split_part(cause, ' ended it: ', 1)
 where step = 'failed' and cause ~ '^(cli|operator):.+ ended it: ';
alter table sweep validate constraint sweep_ended_by;

-- step: concurrently
create index concurrently if not exists sweep_failed on sweep (chain, ended_ms) where step = 'failed' and ended_by is null;
