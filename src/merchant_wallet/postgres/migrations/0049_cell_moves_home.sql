-- Moves of cells to other databases. A row exists from the beginning of a move until its end, when the old copy is dropped or the
-- move is undone.

-- `move_id` marks what belongs to the move in both databases. `address` is the new place, `old_address` the old one; without it the
-- old one is this database. copying: the old place is used, and PostgreSQL copies it to the new one. switching: the cell is closed,
-- and the mover compares. reopening: the mover gave up or died, and the old place must be opened again. switched: home sends
-- everybody to the new place; the old one stays closed.
create table cell_move (
    cell_id int primary key references cell check (cell_id > 0),
    move_id uuid not null,
    state text not null check (state in ('copying', 'switching', 'reopening', 'switched')),
    address text not null check (address <> ''),
    old_address text check (old_address <> ''),
    began_ms bigint not null,
    changed_ms bigint not null
);
