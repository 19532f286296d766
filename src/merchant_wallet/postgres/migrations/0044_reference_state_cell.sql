-- How new an apart cell's copies of home's rates and evidence are. One row, which the worker writes each second. The default cell has
-- no row: its books read home's own tables.

-- `change_no` and `changed_ms` are of the newest change of a rate that was copied; `checked_ms` is when it was compared last.
create table reference_state (
    row_no int primary key default 1 check (row_no = 1),
    change_no bigint not null,
    changed_ms bigint not null,
    checked_ms bigint not null
);
