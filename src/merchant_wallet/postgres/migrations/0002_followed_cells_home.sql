-- kind: expand
-- Cells that Citus places: workers follow the node that its catalogue names, and no move may touch such a cell.

-- step: transaction
-- `unfollowed_cause`: why the service does not use the node that Citus names, and since when. Null: it does.
alter table cell
    add column if not exists unfollowed_cause text,
    add column if not exists unfollowed_ms bigint;
-- squawk-ignore ban-drop-constraint
alter table cell drop constraint if exists cell_unfollowed;
alter table cell add constraint cell_unfollowed
    check ((unfollowed_cause is null) = (unfollowed_ms is null) and unfollowed_cause <> '') not valid;

-- step: transaction
alter table cell validate constraint cell_unfollowed;

-- step: transaction
-- A table of cells has a few rows: writing it again takes no time.
-- squawk-ignore adding-field-with-default
alter table cell add column if not exists is_distributed boolean not null generated always as (admin_address is not null) stored;

-- step: concurrently
create unique index concurrently if not exists cell_is_distributed on cell (cell_id, is_distributed);

-- step: transaction
-- A move closes and opens copies of a cell or of a book by versions of its own. A worker that follows Citus raises the cell's version
-- meanwhile. So the two exclude each other: the keys refer to cells that Citus does not place.
alter table cell_move
    add column if not exists is_distributed boolean not null default false constraint cell_move_plain check (not is_distributed);
alter table merchant_move
    add column if not exists is_distributed boolean not null default false constraint merchant_move_plain check (not is_distributed);
-- squawk-ignore ban-drop-constraint
alter table cell_move drop constraint if exists cell_move_of_plain;
-- squawk-ignore ban-drop-constraint
alter table merchant_move drop constraint if exists merchant_move_from_plain, drop constraint if exists merchant_move_to_plain;
alter table cell_move
    add constraint cell_move_of_plain foreign key (cell_id, is_distributed) references cell (cell_id, is_distributed) not valid;
alter table merchant_move
    add constraint merchant_move_from_plain foreign key (from_cell_id, is_distributed) references cell (cell_id, is_distributed) not valid,
    add constraint merchant_move_to_plain foreign key (to_cell_id, is_distributed) references cell (cell_id, is_distributed) not valid;

-- step: transaction
-- The new node of a cell that Citus places. False if somebody else has changed the cell since `seen_version`. A worker may change the
-- address of no other cell, so it calls this function of the owner.
create or replace function follow_cell(followed_id int, seen_version bigint, new_address text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update {schema}.cell set address = new_address, version = version + 1
     where cell_id = followed_id and version = seen_version and admin_address is not null
       and address is distinct from new_address;
    return found;
end
$$;
revoke execute on function follow_cell(int, bigint, text) from public;

-- step: transaction
alter table cell_move validate constraint cell_move_of_plain;
alter table merchant_move validate constraint merchant_move_from_plain;
alter table merchant_move validate constraint merchant_move_to_plain;
