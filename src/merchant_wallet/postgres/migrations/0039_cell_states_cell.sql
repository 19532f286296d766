-- A cell and each of its books can be closed while they are moved to another place. What is closed takes no commands.

-- The cell itself: which one this schema is, and whether it takes commands. It has one row, whose version is the one that
-- home's directory must know. Each move of the cell raises it.
create table cell_state (
    cell_id int primary key check (cell_id >= 0),
    version bigint not null check (version > 0),
    is_open boolean not null
);
create unique index cell_state_one_row on cell_state ((true));

-- A book that is closed here is being moved, or has been moved.
alter table book add column is_open boolean not null default true;
create index book_closed on book (merchant_id) where not is_open;
