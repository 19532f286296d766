-- What home knows of a book.

-- name: read_ranges
-- The book's id ranges. They give an entry's position in the journal from its id. Plain integers: a binary cursor returns the
-- bytes of a domain type.
select range_no::int from id_range where merchant_id = %(merchant_id)s order by range_no;

-- name: list_waits
-- All times in which a person's approvals did not count yet: of all orders, or of one merchant's.
select person, from_ms, eligible_ms, null::bigint as merchant_id from operator_wait
 union all
select person, made_ms, eligible_ms, merchant_id from staff_secret where eligible_ms > made_ms
 order by person, from_ms;

-- name: page_payouts
-- The next payouts of a merchant's orders: their chain, whether nothing is left to do, since when they are frozen, and whether
-- they were closed as lost. An id has its range above 33 bits.
select order_id, chain::text, phase = 'closed', frozen_ms, phase = 'closed' and coalesce(obstacle_kind = %(lost)s, false) from payout
 where merchant_id = %(merchant_id)s and order_id > %(after)s
   and (phase <> 'closed'
        or order_id >> 33 >= (select coalesce(min(range_no), 0) from id_range where merchant_id = %(merchant_id)s))
 order by order_id limit %(page)s;

-- name: find_not_issued
-- Of these addresses, the first that the platform has not issued to the merchant.
select u.address from unnest(%(addresses)s::bytea[]) u (address)
  left join issued_address g on g.address = u.address and g.merchant_id = %(merchant_id)s
 where g.address is null limit 1;

-- name: read_frozen
-- Since when a payout is frozen.
select frozen_ms from payout where merchant_id = %(merchant_id)s and order_id = %(order_id)s;

-- name: find_placed
-- Of these merchants, those whose book is in the cell. A merchant that home does not know counts for the default cell.
select u.merchant_id from unnest(%(merchant_ids)s::bigint[]) u (merchant_id)
  left join merchant m on m.merchant_id = u.merchant_id
 where coalesce(m.cell_id, 0) = %(cell_id)s::int order by u.merchant_id;
