-- The directory of cells, and which of them has a merchant's book.

-- `version` is raised by each move of the cell, and stands in the cell's own `cell_state` too. Without an address the cell's
-- schema is in this database. `admin_address` is for changes of tables, if they must go to another server. Addresses contain no
-- passwords.
create table cell (
    cell_id int primary key check (cell_id >= 0),
    name text not null unique check (name ~ '^[a-z][a-z0-9_-]{0,30}$' and name <> 'home'),
    schema_name text not null check (schema_name ~ '^[a-z][a-z0-9_]{0,62}$'),
    address text check (address <> ''),
    admin_address text check (admin_address <> ''),
    state text not null default 'open' check (state in ('open', 'draining', 'closed', 'retired')),
    version bigint not null default 1 check (version > 0),
    added_ms bigint not null,
    drained_ms bigint,
    -- The default cell is home's own schema, and can't be moved.
    constraint cell_default check (
        (cell_id = 0) = (schema_name = 'public') and (cell_id > 0 or (address is null and state in ('open', 'draining'))))
);
insert into cell (cell_id, name, schema_name, added_ms) values (0, 'main', 'public', 0);
insert into cell_state (cell_id, version, is_open) values (0, 1, true);

alter table merchant add column cell_id int not null default 0 references cell;
