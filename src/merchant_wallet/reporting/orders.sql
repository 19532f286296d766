-- Orders for operators. The index is chosen by status and chain. Other filters are applied to the next `stride` rows of that
-- index.

-- fragment: wanted_books
-- The books of a look-up over all merchants `m`: the one that is wanted, or all that are open.
(m.merchant_id = %(merchant_id)s::bigint or (%(merchant_id)s::bigint is null and m.{open_books}))

-- fragment: columns
-- The columns of an order in a list: `w` is the order, `m` its merchant.
w.merchant_id, w.order_id, w.mc_order_id, w.amount, w.fee, w.rate_e8, w.chain, w.address, w.status, w.approved_ms,
       w.approved_by, w.deadline_ms, w.created_ms, w.finished_ms, w.notified_ms, w.tx_hash, w.first_approved_by,
       w.second_limit_units, m.name as merchant_name, m.status = 'active' as is_merchant_active;

-- name: read_payouts
-- What home knows of the payouts of these orders, for those that it has.
select p.merchant_id, p.order_id, p.claimed_by is not null as is_taken_up, p.obstacle_kind, p.obstacle_cause, p.obstacle_ms,
       p.frozen_cause, p.frozen_ms, p.signed_no
  from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[]) u (merchant_id, order_id)
  join payout p on p.merchant_id = u.merchant_id and p.order_id = u.order_id;

-- fragment: next_by_moment
-- The next orders of an index by time.
(w.created_ms, w.order_id) < (%(key_0)s::bigint, %(key_1)s::bigint)
              and w.created_ms >= %(from_ms)s::bigint and w.created_ms < %(to_ms)s::bigint
            order by w.created_ms desc, w.order_id desc limit %(stride)s::int;

-- fragment: next_by_amount
-- The next orders of an index by amount.
(w.amount, w.order_id) < (%(key_0)s::bigint, %(key_1)s::bigint)
              and w.amount >= %(min_units)s::bigint
            order by w.amount desc, w.order_id desc limit %(stride)s::int;

-- fragment: page_rows
-- The rows of a page: the matching ones, and the row where the search stopped.
select {columns}, w.is_edge
  from (select f.*, false as is_edge from found f union all select e.*, true from edge e) w
  join merchant m on m.merchant_id = w.merchant_id;

-- fragment: end_by_moment
-- The end of a page that is sorted newest first.
edge as (
    select s.* from strip s
     where (select count(*) from strip) >= %(stride)s::int and (select count(*) from found) < %(page)s::int
     order by s.created_ms asc, s.order_id asc limit 1)
{page_rows}
 order by w.is_edge, w.created_ms desc, w.order_id desc;

-- fragment: filter_by_amount
-- Keeps orders of at least an amount; newest first.
found as (
    select s.* from strip s
     where s.amount >= %(min_units)s::bigint
     order by s.created_ms desc, s.order_id desc limit %(page)s::int),
{end_by_moment};

-- fragment: filter_by_moment
-- Keeps orders of a period; largest first.
found as (
    select s.* from strip s
     where s.created_ms >= %(from_ms)s::bigint and s.created_ms < %(to_ms)s::bigint
     order by s.amount desc, s.order_id desc limit %(page)s::int),
edge as (
    select s.* from strip s
     where (select count(*) from strip) >= %(stride)s::int and (select count(*) from found) < %(page)s::int
     order by s.amount asc, s.order_id asc limit 1)
{page_rows}
 order by w.is_edge, w.amount desc, w.order_id desc;

-- fragment: filter_unapproved
-- Keeps orders that are not approved; oldest first.
found as (
    select s.* from strip s
     where s.approved_ms is null
     order by s.created_ms asc, s.order_id asc limit %(page)s::int),
edge as (
    select s.* from strip s
     where (select count(*) from strip) >= %(stride)s::int and (select count(*) from found) < %(page)s::int
     order by s.created_ms desc, s.order_id desc limit 1)
{page_rows}
 order by w.is_edge, w.created_ms asc, w.order_id asc;

-- name: page_by_moment
-- All merchants' orders, newest first.
with strip as materialized (
    select w.* from unnest(%(statuses)s::smallint[]) k (status) cross join unnest(%(chains)s::text[]) c (chain)
     cross join lateral (
           select * from withdrawal w
            where w.status = k.status and w.chain = c.chain and w.{open_books}
              and {next_by_moment}) w
     order by w.created_ms desc, w.order_id desc limit %(stride)s::int),
{filter_by_amount};

-- name: page_of_merchant_by_moment
-- One merchant's orders, newest first.
with strip as materialized (
    select w.* from unnest(%(statuses)s::smallint[]) k (status) cross join unnest(%(chains)s::text[]) c (chain)
     cross join lateral (
           select * from withdrawal w
            where w.merchant_id = %(merchant_id)s::bigint and w.status = k.status and w.chain = c.chain
              and {next_by_moment}) w
     order by w.created_ms desc, w.order_id desc limit %(stride)s::int),
{filter_by_amount};

-- name: page_by_amount
-- All merchants' orders, largest first.
with strip as materialized (
    select w.* from unnest(%(statuses)s::smallint[]) k (status) cross join unnest(%(chains)s::text[]) c (chain)
     cross join lateral (
           select * from withdrawal w
            where w.status = k.status and w.chain = c.chain and w.{open_books}
              and {next_by_amount}) w
     order by w.amount desc, w.order_id desc limit %(stride)s::int),
{filter_by_moment};

-- name: page_of_merchant_by_amount
-- One merchant's orders, largest first.
with strip as materialized (
    select w.* from unnest(%(statuses)s::smallint[]) k (status) cross join unnest(%(chains)s::text[]) c (chain)
     cross join lateral (
           select * from withdrawal w
            where w.merchant_id = %(merchant_id)s::bigint and w.status = k.status and w.chain = c.chain
              and {next_by_amount}) w
     order by w.amount desc, w.order_id desc limit %(stride)s::int),
{filter_by_moment};

-- name: page_by_address
-- Orders to one address, newest first, of one merchant or all: one index look-up for each merchant.
with strip as materialized (
    select w.* from merchant m
     cross join lateral (
           select * from withdrawal w
            where w.merchant_id = m.merchant_id and lower(w.address) = %(address)s::text
              and {next_by_moment}) w
     where {wanted_books}
     order by w.created_ms desc, w.order_id desc limit %(stride)s::int),
found as (
    select s.* from strip s
     where s.status = any(%(statuses)s::smallint[]) and s.amount >= %(min_units)s::bigint
       and s.chain = any(%(chains)s::text[])
     order by s.created_ms desc, s.order_id desc limit %(page)s::int),
{end_by_moment};

-- name: page_unapproved
-- Orders of all merchants that wait for approval, oldest first.
with strip as materialized (
    select * from withdrawal w
     where w.status = 0 and w.approved_ms is null and w.{open_books} and (w.created_ms, w.order_id) > (%(key_0)s::bigint, %(key_1)s::bigint)
     order by w.created_ms asc, w.order_id asc limit %(stride)s::int),
{filter_unapproved};

-- name: page_unapproved_of_merchant
-- Orders of one merchant that wait for approval, oldest first.
with strip as materialized (
    select w.* from unnest(chain_codes()) c (chain)
     cross join lateral (
           select * from withdrawal w
            where w.merchant_id = %(merchant_id)s::bigint and w.status = 0 and w.chain = c.chain
              and (w.created_ms, w.order_id) > (%(key_0)s::bigint, %(key_1)s::bigint)
            order by w.created_ms asc, w.order_id asc limit %(stride)s::int) w
     order by w.created_ms asc, w.order_id asc limit %(stride)s::int),
{filter_unapproved};

-- name: find_by_order_id
-- One order. Its id names its book.
select {columns}
  from withdrawal w
  join merchant m on m.merchant_id = w.merchant_id
 where w.merchant_id = %(merchant_id)s::bigint and w.order_id = %(order_id)s::bigint;

-- name: find_by_mc_order_id
-- The orders with this order id, one index look-up for each merchant.
select {columns}
  from merchant m
 cross join lateral (select * from withdrawal w
                      where w.merchant_id = m.merchant_id and w.mc_order_id = %(mc_order_id)s::text limit 1) w
 where {wanted_books}
 order by m.merchant_id limit %(limit)s::int;

-- name: sum_addresses
-- How often and how much addresses were paid or are to be paid, by merchant and status, among each merchant's newest orders;
-- and how many of these orders are new.
select a.address, w.merchant_id, m.name as merchant_name, w.status, count(*) as orders, sum(w.amount) as units,
       min(w.created_ms) as first_ms, max(w.created_ms) as last_ms,
       count(*) filter (where w.created_ms >= %(since_ms)s::bigint) as recent
  from unnest(%(addresses)s::text[]) a (address) cross join merchant m
 cross join lateral (select merchant_id, status, amount, created_ms from withdrawal
                      where merchant_id = m.merchant_id and lower(address) = a.address
                      order by created_ms desc, order_id desc limit %(most)s::int) w
 where {wanted_books}
 group by a.address, w.merchant_id, m.name, w.status order by w.merchant_id, w.status;

-- name: count_open
-- All merchants' open orders, each status counted up to a bound.
select k.status, count(w.status) as orders, coalesce(sum(w.amount), 0) as units, min(w.created_ms) as oldest_ms
  from unnest(array[0, 1, 3]::smallint[]) k (status)
  left join lateral (select w.status, w.amount, w.created_ms from withdrawal w
                      where w.status in (0, 1, 3) and w.status = k.status and w.{open_books}
                      order by w.created_ms asc limit %(most)s::int) w on true
 group by k.status;

-- name: count_open_of_merchant
-- The same for one merchant.
select k.status, count(w.status) as orders, coalesce(sum(w.amount), 0) as units, min(w.created_ms) as oldest_ms
  from unnest(array[0, 1, 3]::smallint[]) k (status) cross join unnest(chain_codes()) c (chain)
  left join lateral (select w.status, w.amount, w.created_ms from withdrawal w
                      where w.merchant_id = %(merchant_id)s::bigint and w.status = k.status and w.chain = c.chain
                      order by w.created_ms asc limit %(most)s::int) w on true
 group by k.status;

-- name: count_ended
-- How many orders ended in each way, by the entries that released their holds.
select f.kind::text as kind, sum(f.entries)::bigint as orders, sum(f.amount) + sum(f.fee) as units
  from daily_figure f
 where f.merchant_id = %(merchant_id)s::bigint and f.kind in ('settle', 'refund', 'cancel', 'expire')
 group by f.kind;

-- name: list_held
-- Payouts that are frozen or wait for an obstacle, longest first.
select p.merchant_id, p.order_id
  from ((select merchant_id, order_id, frozen_ms as since_ms from payout where frozen_ms is not null
          order by frozen_ms limit %(limit)s::int)
        union all
        (select merchant_id, order_id, obstacle_ms from payout where obstacle_ms is not null and frozen_ms is null
          order by obstacle_ms limit %(limit)s::int)) p
 order by p.since_ms, p.merchant_id, p.order_id limit %(limit)s::int;

-- name: list_open_by_id
-- These orders, in their order, as far as they are open.
select {columns}
  from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[]) with ordinality u (merchant_id, order_id, place)
  join withdrawal w on w.merchant_id = u.merchant_id and w.order_id = u.order_id
  join merchant m on m.merchant_id = w.merchant_id
 where w.status in (0, 1, 3) and w.{open_books}
 order by u.place;
