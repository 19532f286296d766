-- Where books are, after home or a cell was rolled back. `book_placement.py` runs these.

-- name: list_cells
-- The names of all cells.
select cell_id, name from cell;

-- name: list_places
-- Where home says that books are, and whether a move has closed one for a moment.
select m.merchant_id, m.cell_id, m.move_version, m.carried_version > 0 as is_opened,
       coalesce(v.state in ('switching', 'reopening', 'opening'), false) as is_between
  from merchant m left join merchant_move v using (merchant_id) order by m.merchant_id;

-- name: list_copies
-- The copies of books in a cell, closed ones too.
select merchant_id, is_open, move_version, entry_count from book order by merchant_id;

-- name: is_partial
-- Whether the journal of a copy does not end where its book does: it was still being filled.
select coalesce((select e.hash from entry e where e.merchant_id = b.merchant_id order by e.entry_id desc limit 1) <> b.head_hash,
                b.entry_count > 0
                and not exists (select from archived_month a where a.merchant_id = b.merchant_id and a.removed_id > 0))
  from book b where b.merchant_id = %(merchant_id)s::bigint;

-- name: raise_version
-- Home's number for what is done with the copies next.
update merchant set move_version = %(move_version)s::bigint
 where merchant_id = %(merchant_id)s::bigint and move_version < %(move_version)s::bigint;

-- name: read_border
-- The last entry of a copy that is in the archive alone. The archive has what is in all copies.
select coalesce(max(removed_id), 0) from archived_month where merchant_id = %(merchant_id)s::bigint;

-- name: page_entries
-- The entries of a copy after that border, newest first.
select entry_id, hash from entry
 where merchant_id = %(merchant_id)s::bigint and entry_id > %(after)s::bigint and entry_id < %(before)s::bigint
 order by entry_id desc limit %(page)s::int;

-- name: find_entries
-- Those of these entries that a copy has, with their hashes.
select e.entry_id, e.hash
  from unnest(%(entry_ids)s::bigint[]) u (entry_id)
  join entry e on e.merchant_id = %(merchant_id)s::bigint and e.entry_id = u.entry_id;

-- name: write_place
-- Where a book is. In the default cell a book has the newest settings at once.
update merchant
   set cell_id = %(cell_id)s::int, move_version = %(move_version)s::bigint,
       carried_version = case when %(cell_id)s::int = 0 then settings_version else carried_version end
 where merchant_id = %(merchant_id)s::bigint
returning settings_version;

-- name: drop_move
-- A move that home has begun, or lost the end of.
delete from merchant_move where merchant_id = %(merchant_id)s::bigint;

-- name: write_move
-- The record of the move that home has lost: the book is in its new cell, and the old copy was not dropped.
insert into merchant_move (merchant_id, move_id, state, from_cell_id, to_cell_id, began_ms, changed_ms)
values (%(merchant_id)s::bigint, gen_random_uuid(), 'switched', %(from_cell_id)s::int, %(cell_id)s::int,
        (extract(epoch from clock_timestamp()) * 1000)::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint);

-- name: drop_payouts
-- Payouts of orders that only a closed copy has, for which nothing was reserved or signed.
delete from payout p
 where p.merchant_id = %(merchant_id)s::bigint and p.order_id = any (%(order_ids)s::bigint[]) and p.signed_no = 0
   and not exists (select from payout_reservation r where r.merchant_id = p.merchant_id and r.order_id = p.order_id);

-- name: close_left_behind
-- The other payouts of such orders. What was signed for them stays on record. Nothing more is signed, and `verify` expects no order.
-- A payer that still has one loses its claim, so it does not take the mark away.
update payout set fence = fence + (fence > 0)::int, phase = 'closed', frozen_cause = null, frozen_ms = null, obstacle_kind = %(lost)s::text,
       obstacle_cause = 'only a closed copy of the book has its order', obstacle_ms = %(now_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and order_id = any (%(order_ids)s::bigint[])
   and (phase <> 'closed' or obstacle_kind is distinct from %(lost)s::text)
returning order_id;

-- name: drop_unsigned
-- Payouts of a book that begins anew, for which nothing was reserved or signed. Its orders are lost.
delete from payout p
 where p.merchant_id = %(merchant_id)s::bigint and p.phase <> 'closed' and p.signed_no = 0
   and not exists (select from payout_reservation r where r.merchant_id = p.merchant_id and r.order_id = p.order_id)
returning p.order_id;

-- name: close_payouts
-- Its other open payouts. The transfers that were signed for them stay on record. Nothing more is signed.
update payout set phase = 'closed', frozen_cause = null, frozen_ms = null, obstacle_kind = null, obstacle_cause = null, obstacle_ms = null
 where merchant_id = %(merchant_id)s::bigint and (phase <> 'closed' or frozen_ms is not null) returning order_id;

-- name: drop_ranges
-- A book that begins anew has one range: the place of an entry in the journal follows from its id.
delete from id_range where merchant_id = %(merchant_id)s::bigint and range_no < %(range_no)s::int;

-- name: begin_anew
-- The book waits to be opened in its cell.
update merchant set carried_version = 0 where merchant_id = %(merchant_id)s::bigint and cell_id > 0;
