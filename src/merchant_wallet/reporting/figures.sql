-- What all books hold and did, for the overview. Balances are read as they are, of the accounts that every book has;
-- volumes come from the figures.

-- name: sum_accounts
-- What one book, or all, holds on the fixed accounts.
select a.kind::text as kind, a.currency::text as currency, sum(a.balance) as units
  from book b join account a on a.merchant_id = b.merchant_id and a.account_id <= %(last_fixed)s::bigint
 where (%(merchant_id)s::bigint is null or b.merchant_id = %(merchant_id)s::bigint)
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

-- name: read_lag
-- How far the figures are behind the books, and since when nothing was added.
select coalesce(sum(b.entry_count - coalesce(c.entries, 0)), 0)::bigint as missing, coalesce(sum(c.sub_users), 0)::bigint as sub_users,
       max(c.moved_ms) as moved_ms, count(*) as books
  from book b left join figure_cursor c on c.merchant_id = b.merchant_id
 where (%(merchant_id)s::bigint is null or b.merchant_id = %(merchant_id)s::bigint);

-- name: count_unapproved
-- Orders that wait for a word, up to a bound.
select count(*) as orders, coalesce(sum(w.amount), 0) as amount_units, min(w.created_ms) as oldest_ms
  from (select amount, created_ms from withdrawal
         where status = 0 and approved_ms is null order by created_ms asc limit %(most)s::int) w;

-- name: count_frozen
-- Payouts that were stopped until somebody has looked.
select count(*) as orders, min(frozen_ms) as oldest_ms from payout where frozen_ms is not null;

-- name: count_deposits
-- What has arrived and is in no book yet, up to a bound.
select k.status, count(d.status) as deposits, coalesce(sum(d.amount), 0) as amount_units, min(d.seen_ms) as oldest_ms
  from unnest(array['seen', 'pending', 'dust', 'held']) k (status) cross join unnest(array['ERC20', 'TRC20']) c (chain)
  left join lateral (select d.status, d.amount, d.seen_ms from deposit d
                      where d.status = k.status and d.chain = c.chain order by d.seen_ms asc limit %(most)s::int) d on true
 group by k.status;

-- name: list_failing
-- Merchants whose callbacks are parked or being repeated, those with the most first.
select c.merchant_id, m.name, count(*) as callbacks, min(c.created_ms) as oldest_ms
  from ((select merchant_id, created_ms from callback where state = 'parked' order by created_ms desc limit %(most)s::int)
        union all
        (select merchant_id, created_ms from callback where state = 'due' and retry_no > 0
          order by merchant_id, next_ms limit %(most)s::int)) c
  join merchant m on m.merchant_id = c.merchant_id
 group by c.merchant_id, m.name order by callbacks desc, c.merchant_id limit %(limit)s::int;
