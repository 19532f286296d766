-- Balances and volumes of all books, for the overview. Balances come from the fixed accounts that every book has, volumes
-- from the figures.

-- name: sum_accounts
-- The fixed accounts of one book or of all. Without `offset 0` PostgreSQL 15 to 17 read the accounts of all sub-users.
select a.kind::text as kind, a.currency::text as currency, sum(a.balance) as units
  from book b
 cross join lateral (
       select kind, currency, balance from account
        where merchant_id = b.merchant_id and account_id <= %(last_fixed)s::bigint offset 0) a
 where (%(merchant_id)s::bigint is null or b.merchant_id = %(merchant_id)s::bigint) and b.is_open
 group by a.kind, a.currency;

-- name: list_days
-- A scope's figures, day by day.
select day, kind::text as kind, currency::text as currency, entries, amount as amount_units, fee as fee_units
  from daily_figure
 where merchant_id = %(merchant_id)s::bigint and day >= %(since_day)s::int and day <= %(until_day)s::int
 order by day, kind, currency;

-- name: sum_days
-- A scope's figures of a period, all days together.
select kind::text as kind, currency::text as currency, sum(entries)::bigint as entries, sum(amount) as amount_units,
       sum(fee) as fee_units
  from daily_figure
 where merchant_id = %(merchant_id)s::bigint and day >= %(since_day)s::int and day <= %(until_day)s::int
 group by kind, currency order by kind, currency;

-- name: sum_payouts
-- The payouts of a period, of some merchants.
select merchant_id, sum(entries)::bigint as orders, sum(amount) + sum(fee) as units
  from daily_figure
 where merchant_id = any(%(merchant_ids)s::bigint[]) and kind = 'settle' and currency = %(currency)s::text
   and day >= %(since_day)s::int and {open_books}
 group by merchant_id;

-- name: read_lag
-- How far the figures are behind the books, and when entries were last added.
select coalesce(sum(b.entry_count - coalesce(c.entries, 0)), 0)::bigint as missing, coalesce(sum(c.sub_users), 0)::bigint as sub_users,
       max(c.moved_ms) as moved_ms, count(*) as books
  from book b left join figure_cursor c on c.merchant_id = b.merchant_id
 where (%(merchant_id)s::bigint is null or b.merchant_id = %(merchant_id)s::bigint) and b.is_open;

-- name: count_unapproved
-- Orders that wait for approval, up to a bound.
select count(*) as orders, coalesce(sum(w.amount), 0) as amount_units, min(w.created_ms) as oldest_ms
  from (select amount, created_ms from withdrawal
         where status = 0 and approved_ms is null and {open_books} order by created_ms asc limit %(most)s::int) w;

-- name: count_frozen
-- Frozen payouts.
select count(*) as orders, min(frozen_ms) as oldest_ms from payout where frozen_ms is not null;

-- name: count_deposits
-- Deposits that are in no book yet, up to a bound.
select k.status, count(d.status) as deposits, coalesce(sum(d.amount), 0) as amount_units, min(d.seen_ms) as oldest_ms
  from unnest(array['seen', 'pending', 'dust', 'held']) k (status) cross join unnest(chain_codes()) c (chain)
  left join lateral (select d.status, d.amount, d.seen_ms from deposit d
                      where d.status = k.status and d.chain = c.chain and d.{open_books} order by d.seen_ms asc limit %(most)s::int) d on true
 group by k.status;

-- name: list_failing
-- Merchants with failing callbacks, those with the most first.
select c.merchant_id, m.name, count(*) as callbacks, min(c.created_ms) as oldest_ms
  from ((select merchant_id, created_ms from callback where state = 'dead_letter' and {open_books} order by created_ms desc limit %(most)s::int)
        union all
        (select merchant_id, created_ms from callback where state = 'due' and retry_no > 0 and {open_books}
          order by merchant_id, next_ms limit %(most)s::int)) c
  join merchant m on m.merchant_id = c.merchant_id
 group by c.merchant_id, m.name order by callbacks desc, c.merchant_id limit %(limit)s::int;
