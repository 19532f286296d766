-- kind: expand
-- Who ended a rescue without a sweep by hand, and when. One with a sweep is ended with that.

-- step: transaction
-- Null: nobody. A rescue that failed without a sweep waits in the inbox until a person ends it.
alter table rescue add column if not exists ended_by text;
alter table rescue add column if not exists ended_by_ms bigint;
-- squawk-ignore ban-drop-constraint
alter table rescue drop constraint if exists rescue_ended_by;
alter table rescue add constraint rescue_ended_by
    check ((ended_by is null) = (ended_by_ms is null) and (ended_by is null or (ended_by <> '' and ended_ms is not null)))
    not valid;

-- step: transaction
alter table rescue validate constraint rescue_ended_by;
