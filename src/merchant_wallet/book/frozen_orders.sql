-- Orders that are frozen in their cell.

-- name: outdate_book
-- Locks a book. Groups that were judged before can't commit. No row if the book is closed.
update book set version = %(version)s::uuid where merchant_id = %(merchant_id)s::bigint and is_open returning merchant_id;

-- name: freeze
-- Freezes an open order. One that has ended needs nothing.
update withdrawal set frozen_ms = %(now_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and status in (0, 1, 3);

-- name: thaw
-- Thaws an order, or only one that was frozen at this time.
update withdrawal set frozen_ms = null
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint
   and frozen_ms = coalesce(%(since_ms)s::bigint, frozen_ms);

-- name: list_frozen
-- The open orders that are frozen.
select merchant_id, order_id, frozen_ms from withdrawal
 where frozen_ms is not null and status in (0, 1, 3)
   and {open_books}
 order by merchant_id, order_id;

-- name: list_unmarked
-- Which of these open orders are not frozen.
select u.merchant_id, u.order_id
  from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[]) u (merchant_id, order_id)
  join book b on b.merchant_id = u.merchant_id and b.is_open
 cross join lateral (
       select 1 from withdrawal
        where merchant_id = u.merchant_id and order_id = u.order_id and frozen_ms is null and status in (0, 1, 3) limit 1) w;
