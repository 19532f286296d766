-- Moves of single books to other cells. A row exists from the beginning of a move until its end, when the old copy is dropped or the
-- move is undone.

-- Raised by each step of a move that opens or closes a copy of the book. Whoever raised it last may go on.
alter table merchant add column move_version bigint not null default 0 check (move_version >= 0);

-- copying: the old copy is used, and the mover copies it. switching: the old copy is closed, and the mover compares. reopening: the
-- mover gave up or died, and the old copy must be opened again. opening: home has decided for the new copy, which must be opened.
-- switched: it is open; the old copy stays closed until it is dropped. `give_up_ms`: the switch is to be over by then.
create table merchant_move (
    merchant_id bigint primary key references merchant,
    move_id uuid not null,
    state text not null check (state in ('copying', 'switching', 'reopening', 'opening', 'switched')),
    from_cell_id int not null references cell,
    to_cell_id int not null references cell,
    began_ms bigint not null,
    changed_ms bigint not null,
    give_up_ms bigint,
    constraint merchant_move_other_cell check (from_cell_id <> to_cell_id)
);
