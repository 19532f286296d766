-- What home knows of a book.

-- name: read_ranges
-- The book's id ranges. They give an entry's position in the journal from its id. Plain integers: a binary cursor returns the
-- bytes of a domain type.
select range_no::int from id_range where merchant_id = %(merchant_id)s order by range_no;

-- name: list_waits
-- All times in which a person's approvals did not count yet.
select person, from_ms, eligible_ms from operator_wait order by person, from_ms;

-- name: page_payouts
-- The next payouts of a merchant's orders: their chain, and whether nothing is left to do.
select order_id, chain::text, phase = 'closed' from payout
 where merchant_id = %(merchant_id)s and order_id > %(after)s order by order_id limit %(page)s;

-- name: find_not_issued
-- Of these addresses, the first that the platform has not issued to the merchant.
select u.address from unnest(%(addresses)s::bytea[]) u (address)
  left join issued_address g on g.address = u.address and g.merchant_id = %(merchant_id)s
 where g.address is null limit 1;
