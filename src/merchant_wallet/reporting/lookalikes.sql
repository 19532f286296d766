-- Known addresses that begin as a given one. `lookalikes.py` runs these and compares the ends.

-- name: find_ours
-- Addresses that are or were ours, in home. With `owner_id` only that merchant's deposit addresses. The bounds are a range of the
-- primary key of `issued_address`; the other tables have a few rows. `tail`: the last two bytes, where the form shows them.
select w.address as wanted, k.address as known
  from unnest(%(addresses)s::text[], %(lows)s::bytea[], %(highs)s::bytea[], %(tails)s::bytea[]) w (address, low, high, tail)
 cross join lateral (
       select i.address from issued_address i
        where i.address between w.low and w.high and (w.tail is null or substr(i.address, 19, 2) = w.tail)
          and (%(owner_id)s::bigint is null or i.merchant_id = %(owner_id)s::bigint)
       union
       select o.address
         from (select address from hot_wallet union all select address from cold_wallet
               union all select address from custody_address where purpose <> 'deposit') o
        where o.address between w.low and w.high and %(owner_id)s::bigint is null) k;

-- name: list_allowed
-- The allow-lists of some merchants, in home.
select merchant_id, allowed_addresses from merchant
 where merchant_id = any(%(merchant_ids)s::bigint[]) and allowed_addresses <> '{}';

-- name: find_paid
-- Recipients of a merchant's orders that begin as a given address, in its cell, and how often they were paid among their newest orders.
-- It jumps from recipient to recipient along the index withdrawal_by_address. The old copy of a book that has moved is left out.
with recursive found as (
    select w.merchant_id, w.address as wanted, w.high, w.tail, 0 as jumps,
           (select lower(o.address) from withdrawal o
             where o.merchant_id = w.merchant_id and lower(o.address) between w.low and w.high
             order by lower(o.address) limit 1) as known
      from unnest(%(merchant_ids)s::bigint[], %(addresses)s::text[], %(lows)s::text[], %(highs)s::text[], %(tails)s::text[])
           w (merchant_id, address, low, high, tail)
     where w.{open_books}
    union all
    select f.merchant_id, f.wanted, f.high, f.tail, f.jumps + 1,
           (select lower(o.address) from withdrawal o
             where o.merchant_id = f.merchant_id and lower(o.address) > f.known and lower(o.address) <= f.high
             order by lower(o.address) limit 1)
      from found f where f.known is not null and f.jumps < %(most_recipients)s::int)
select f.merchant_id, f.wanted, p.known, p.paid
  from found f
 cross join lateral (
       select max(o.address) as known, count(*) filter (where o.status = %(paid)s::smallint) as paid
         from (select address, status from withdrawal
                where merchant_id = f.merchant_id and lower(address) = f.known
                order by created_ms desc, order_id desc limit %(most)s::int) o) p
 where right(f.known, length(f.tail)) = f.tail and lower(f.wanted) <> f.known and p.paid > 0;
