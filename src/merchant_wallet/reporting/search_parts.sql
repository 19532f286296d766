-- Look-ups by a beginning, a part or an amount. Each reads a few rows of an index, for each merchant or for all.

-- fragment: wanted_books
-- The books of a look-up over all merchants `m`: the one that is wanted, or all that are open.
(m.merchant_id = %(merchant_id)s::bigint or (%(merchant_id)s::bigint is null and m.{open_books}))

-- fragment: wanted_rows
-- The same for the rows `x` of an index that is not by merchant.
(x.merchant_id = %(merchant_id)s::bigint or (%(merchant_id)s::bigint is null and x.{open_books}))

-- name: find_users_by_ext
-- Sub-users whose extUserId begins so. For an end, only the first so many with the beginning are looked at.
select u.merchant_id, m.name as merchant_name, u.user_id, u.ext_user_id
  from merchant m
 cross join lateral (
       select * from (
           select * from sub_user u
            where u.merchant_id = m.merchant_id
              and u.ext_user_id collate "C" >= %(head)s::text and u.ext_user_id collate "C" < %(beyond)s::text
            order by u.ext_user_id collate "C" limit %(looked)s::int) u
        where right(u.ext_user_id, length(%(tail)s::text)) = %(tail)s::text limit %(limit)s::int) u
 where {wanted_books}
 order by u.ext_user_id collate "C", u.merchant_id limit %(limit)s::int;

-- name: find_users_by_name
-- Sub-users whose name begins so, in any case.
select u.merchant_id, m.name as merchant_name, u.user_id, u.ext_user_id, u.username
  from merchant m
 cross join lateral (
       select * from sub_user u
        where u.merchant_id = m.merchant_id
          and lower(u.username) collate "C" >= lower(%(head)s::text) and lower(u.username) collate "C" < lower(%(beyond)s::text)
        order by lower(u.username) collate "C" limit %(limit)s::int) u
 where {wanted_books}
 order by lower(u.username) collate "C", u.merchant_id limit %(limit)s::int;

-- name: find_users_by_part
-- Sub-users whose extUserId has this part, in any case of its ASCII letters. The index has each three characters in a row.
select x.merchant_id, m.name as merchant_name, x.user_id, x.ext_user_id
  from sub_user x join merchant m on m.merchant_id = x.merchant_id
 where search_grams(x.ext_user_id) @> search_grams(%(head)s::text)
   and strpos(lower(x.ext_user_id collate "C"), lower(%(head)s::text collate "C")) > 0
   and {wanted_rows}
 limit %(limit)s::int;

-- name: find_users_by_name_part
-- Sub-users whose name has this part, in any case of its ASCII letters. The index has the pieces of each name.
select x.merchant_id, m.name as merchant_name, x.user_id, x.ext_user_id, x.username
  from sub_user x join merchant m on m.merchant_id = x.merchant_id
 where name_grams(x.username) @> name_grams(%(head)s::text)
   and strpos(lower(x.username collate "C"), lower(%(head)s::text collate "C")) > 0
   and {wanted_rows}
 limit %(limit)s::int;

-- name: find_users_by_address
-- The sub-users of some addresses of one merchant.
select w.merchant_id, m.name as merchant_name, w.user_id, u.ext_user_id, w.address
  from unnest(%(addresses)s::bytea[]) a (address) cross join merchant m
  join wallet_address w on w.merchant_id = m.merchant_id and w.address = a.address
  join sub_user u on u.merchant_id = w.merchant_id and u.user_id = w.user_id
 where {wanted_books};

-- name: find_payout_addresses
-- Different payout addresses that begin so. Each step skips the other orders to the address before.
with recursive step as (
    select m.merchant_id, a.address, a.low, 1 as place
      from unnest(%(heads)s::text[]) h (head) cross join merchant m
     cross join lateral (select w.address, lower(w.address) as low from withdrawal w
                          where w.merchant_id = m.merchant_id and lower(w.address) >= h.head
                            and lower(w.address) < h.head || %(last)s::text
                          order by lower(w.address) limit 1) a
     where {wanted_books}
    union all
    select s.merchant_id, a.address, a.low, s.place + 1
      from step s cross join unnest(%(heads)s::text[]) h (head)
     cross join lateral (select w.address, lower(w.address) as low from withdrawal w
                          where w.merchant_id = s.merchant_id and lower(w.address) > s.low
                            and lower(w.address) < h.head || %(last)s::text
                          order by lower(w.address) limit 1) a
     where s.place < %(limit)s::int)
select min(merchant_id) as merchant_id, low, min(address) as address, count(distinct merchant_id) as merchants from step
 where right(low, length(%(tail)s::text)) = lower(%(tail)s::text)
 group by low order by low limit %(limit)s::int;

-- name: find_orders_by_name
-- Orders whose mcOrderId begins so. For an end, only the first so many with the beginning are looked at.
select w.merchant_id, m.name as merchant_name, w.order_id, w.mc_order_id, w.amount as units
  from merchant m
 cross join lateral (select * from (
                        select * from withdrawal w
                         where w.merchant_id = m.merchant_id and w.mc_order_id >= %(head)s::text
                           and w.mc_order_id < %(beyond)s::text
                         order by w.mc_order_id limit %(looked)s::int) w
                      where starts_with(w.mc_order_id, %(head)s::text)
                        and right(w.mc_order_id, length(%(tail)s::text)) = %(tail)s::text
                      limit %(limit)s::int) w
 where {wanted_books}
 order by w.mc_order_id, w.merchant_id limit %(limit)s::int;

-- name: find_entries_by_name
-- Entries, apart from orders, whose mcOrderId begins so, among the first so many with the beginning.
select e.merchant_id, m.name as merchant_name, e.entry_id, e.kind::text as kind, e.mc_order_id::text as mc_order_id
  from merchant m
 cross join lateral (select * from (
                        select * from entry e
                         where e.merchant_id = m.merchant_id and e.mc_order_id >= %(head)s::text
                           and e.mc_order_id < %(beyond)s::text
                         order by e.mc_order_id limit %(looked)s::int) e
                      where starts_with(e.mc_order_id, %(head)s::text) and e.kind <> 'withdraw'
                        and right(e.mc_order_id, length(%(tail)s::text)) = %(tail)s::text
                      limit %(limit)s::int) e
 where {wanted_books}
 order by e.mc_order_id::text, e.merchant_id limit %(limit)s::int;

-- name: find_id_ranges
-- Whose the ranges of ids are that lie within these. Home has them.
select r.range_no, r.merchant_id
  from unnest(%(first_nos)s::int[], %(last_nos)s::int[]) u (first_no, last_no)
 cross join lateral (select * from id_range r where r.range_no >= u.first_no and r.range_no <= u.last_no
                      order by r.range_no limit %(most)s::int) r
 where coalesce(%(merchant_id)s::bigint, r.merchant_id) = r.merchant_id
 limit %(most)s::int;

-- name: find_entries_by_id
-- Entries with numbers of these ranges, the newest first. An order has the number of the entry that opened it.
select e.merchant_id, m.name as merchant_name, e.entry_id, e.kind::text as kind, e.mc_order_id::text as mc_order_id
  from unnest(%(merchant_ids)s::bigint[], %(from_ids)s::bigint[], %(until_ids)s::bigint[]) r (merchant_id, from_id, until_id)
  join merchant m on m.merchant_id = r.merchant_id
 cross join lateral (select * from entry e
                      where e.merchant_id = r.merchant_id and e.entry_id >= r.from_id and e.entry_id < r.until_id
                      order by e.entry_id desc limit %(limit)s::int) e
 where m.{open_books}
 order by e.entry_id desc limit %(limit)s::int;

-- name: find_orders_by_amount
-- The newest orders of exactly this amount.
select x.merchant_id, m.name as merchant_name, x.order_id, x.mc_order_id, x.amount as units
  from unnest(array[0, 1, 2, 3, 4, 5, 6]::smallint[]) k (status) cross join unnest(chain_codes()) c (chain)
 cross join lateral (select * from withdrawal x
                      where x.status = k.status and x.chain = c.chain and x.amount = %(units)s::bigint and x.{open_books}
                      order by x.order_id desc limit %(limit)s::int) x
  join merchant m on m.merchant_id = x.merchant_id
 order by x.created_ms desc limit %(limit)s::int;

-- name: find_orders_of_merchant_by_amount
-- The same of one merchant.
select x.merchant_id, m.name as merchant_name, x.order_id, x.mc_order_id, x.amount as units
  from unnest(array[0, 1, 2, 3, 4, 5, 6]::smallint[]) k (status) cross join unnest(chain_codes()) c (chain)
 cross join lateral (select * from withdrawal x
                      where x.merchant_id = %(merchant_id)s::bigint and x.status = k.status and x.chain = c.chain
                        and x.amount = %(units)s::bigint
                      order by x.order_id desc limit %(limit)s::int) x
  join merchant m on m.merchant_id = x.merchant_id
 order by x.created_ms desc limit %(limit)s::int;

-- name: find_deposits_by_amount
-- The newest deposits of exactly this amount.
select x.merchant_id, m.name as merchant_name, x.chain, x.tx_hash, x.log_index, x.amount as units
  from deposit x join merchant m on m.merchant_id = x.merchant_id
 where x.amount = %(units)s::bigint and {wanted_rows}
 order by x.amount, x.seen_ms desc limit %(limit)s::int;

-- name: find_deposits_by_hash
-- Deposits whose transaction's hash begins so.
select x.merchant_id, m.name as merchant_name, x.chain, x.tx_hash, x.log_index, x.amount as units
  from unnest(%(heads)s::text[]) h (head) cross join unnest(chain_codes()) c (chain)
 cross join lateral (select * from deposit x
                      where x.chain = c.chain and x.tx_hash >= h.head and x.tx_hash < h.head || %(last)s::text
                        and starts_with(x.tx_hash, h.head)
                        and right(x.tx_hash, length(%(tail)s::text)) = lower(%(tail)s::text)
                        and {wanted_rows}
                      order by x.tx_hash limit %(limit)s::int) x
  join merchant m on m.merchant_id = x.merchant_id
 order by x.tx_hash limit %(limit)s::int;

-- name: find_payouts_by_hash
-- The orders for which a transaction was signed whose hash begins so. Home has them.
select p.merchant_id, m.name as merchant_name, p.order_id, p.tx_hash
  from unnest(%(heads)s::text[]) h (head)
 cross join lateral (select * from payout_signed p
                      where p.tx_hash >= h.head and p.tx_hash < h.head || %(last)s::text and starts_with(p.tx_hash, h.head)
                        and right(p.tx_hash, length(%(tail)s::text)) = lower(%(tail)s::text)
                        and coalesce(%(merchant_id)s::bigint, p.merchant_id) = p.merchant_id
                      order by p.tx_hash limit %(limit)s::int) p
  join merchant m on m.merchant_id = p.merchant_id
 order by p.tx_hash limit %(limit)s::int;

-- name: find_issued_addresses
-- The addresses that were given out within a range, and whose they are. Home has them.
select address, merchant_id from issued_address
 where address >= %(least)s::bytea and address <= %(greatest)s::bytea
   and coalesce(%(merchant_id)s::bigint, merchant_id) = merchant_id
 order by address limit %(limit)s::int;
