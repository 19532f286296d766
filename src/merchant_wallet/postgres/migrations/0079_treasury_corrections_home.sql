-- kind: expand
-- A correction of a treasury record names that record. A corrected record explains nothing, and may be made anew.

-- step: transaction
-- `corrects`: the record that this one takes back. `corrects_direction`: that record's direction, so that one key compares all of it.
-- `replaces`: the corrected record that this one repeats. Rows are only inserted, also now.
alter table treasury_movement add column if not exists corrects bigint;
alter table treasury_movement add column if not exists corrects_direction text;
alter table treasury_movement add column if not exists replaces bigint;
-- squawk-ignore ban-drop-constraint
alter table treasury_movement drop constraint if exists treasury_movement_opposite;
alter table treasury_movement add constraint treasury_movement_opposite check (
    (corrects is null) = (corrects_direction is null) and corrects_direction <> direction
    and (corrects is null or replaces is null)) not valid;

-- step: transaction
alter table treasury_movement validate constraint treasury_movement_opposite;

-- step: concurrently
create unique index concurrently if not exists treasury_movement_whole
    on treasury_movement (chain, movement_no, tx_hash, amount, direction);

-- step: concurrently
-- A record is corrected once.
create unique index concurrently if not exists treasury_movement_corrects on treasury_movement (chain, corrects);

-- step: concurrently
-- The same movement counts once: it may be repeated only instead of a corrected record, once for each.
create unique index concurrently if not exists treasury_movement_once
    on treasury_movement (chain, tx_hash, direction, amount, coalesce(replaces, 0)) where corrects is null;

-- step: transaction
-- squawk-ignore ban-drop-constraint
alter table treasury_movement drop constraint if exists treasury_movement_corrected;
-- The corrected record has the same transaction and amount.
alter table treasury_movement add constraint treasury_movement_corrected
    foreign key (chain, corrects, tx_hash, amount, corrects_direction)
    references treasury_movement (chain, movement_no, tx_hash, amount, direction) not valid;
-- squawk-ignore ban-drop-constraint
alter table treasury_movement drop constraint if exists treasury_movement_replaced;
-- What is repeated was corrected.
alter table treasury_movement add constraint treasury_movement_replaced
    foreign key (chain, replaces) references treasury_movement (chain, corrects) not valid;
-- squawk-ignore ban-drop-constraint
alter table treasury_movement drop constraint if exists treasury_movement_repeated;
-- It is the same movement.
alter table treasury_movement add constraint treasury_movement_repeated
    foreign key (chain, replaces, tx_hash, amount, direction)
    references treasury_movement (chain, movement_no, tx_hash, amount, direction) not valid;

-- step: transaction
alter table treasury_movement validate constraint treasury_movement_corrected;
alter table treasury_movement validate constraint treasury_movement_replaced;
alter table treasury_movement validate constraint treasury_movement_repeated;
