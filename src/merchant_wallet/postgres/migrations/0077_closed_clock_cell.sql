-- kind: expand
-- No entry is dated into a month whose figures were made, whatever a machine's clock says.

-- The end of that month. A book's clock is never before it.
alter table book add column if not exists closed_ms bigint not null default 0;
