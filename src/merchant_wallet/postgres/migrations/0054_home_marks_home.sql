-- The number that home tells each cell. It is raised here first, so a cell never has a higher one.
alter table cell add column marked_no bigint not null default 0;
