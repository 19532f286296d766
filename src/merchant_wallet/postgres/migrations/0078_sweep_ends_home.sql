-- kind: expand
-- Sweeps that can't go on end: with a further top-up within their budget, or failed.

-- step: transaction
-- `stalled_ms`: since when the present transaction can't be signed. `budget`: the most coin that the sweep and what continues it
-- may burn. A sweep from before has none, and is not continued. `continues`: the sweep whose place it took.
alter table sweep add column if not exists stalled_ms bigint;
alter table sweep add column if not exists budget bigint;
alter table sweep add column if not exists continues bigint;
-- squawk-ignore ban-drop-constraint
alter table sweep drop constraint if exists sweep_step_check;
alter table sweep add constraint sweep_step_check
    check (step in ('top_up', 'token', 'done', 'continued', 'failed', 'dropped')) not valid;
-- squawk-ignore ban-drop-constraint
alter table sweep drop constraint if exists sweep_cause;
alter table sweep add constraint sweep_cause
    check ((cause is null) = (step not in ('continued', 'failed', 'dropped'))) not valid;
-- A sweep is continued only while its token transfer has moved and burnt nothing.
-- squawk-ignore ban-drop-constraint
alter table sweep drop constraint if exists sweep_continued;
alter table sweep add constraint sweep_continued
    check (step <> 'continued' or (token_tx_hash is null and token_fee is null)) not valid;
-- squawk-ignore ban-drop-constraint
alter table sweep drop constraint if exists sweep_budget;
alter table sweep add constraint sweep_budget check (top_up_fee_limit + token_fee_limit <= budget) not valid;
-- squawk-ignore ban-drop-constraint
alter table sweep drop constraint if exists sweep_continues;
alter table sweep add constraint sweep_continues
    foreign key (chain, continues) references sweep (chain, sweep_id) not valid;

-- step: transaction
alter table sweep validate constraint sweep_step_check;
alter table sweep validate constraint sweep_cause;
alter table sweep validate constraint sweep_continued;
alter table sweep validate constraint sweep_budget;
alter table sweep validate constraint sweep_continues;

-- step: concurrently
-- A sweep is continued by one.
create unique index concurrently if not exists sweep_continued_once on sweep (chain, continues) where continues is not null;
