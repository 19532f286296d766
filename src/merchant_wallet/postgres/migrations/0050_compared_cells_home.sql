-- When the books of each apart cell were last compared with their checkpoints.

-- The beginning of the comparison, on this database's clock. Payouts of a cell begin after one.
alter table cell add column compared_ms bigint not null default 0;
