-- What moved on the accounts, from the rollup. Merchant 0 stands for all merchants of the cell, account 0 for all wallets.

-- name: sum_movements
-- What moved in a period, by account and kind.
select account_id, currency::text as currency, kind::text as kind, sum(in_units) as in_units, sum(out_units) as out_units,
       sum(postings)::bigint as postings
  from daily_movement
 where merchant_id = %(merchant_id)s::bigint and day >= %(since_day)s::int and day < %(until_day)s::int
 group by account_id, currency, kind;

-- name: sum_before
-- The balances before a day.
select account_id, currency::text as currency, sum(in_units) - sum(out_units) as units
  from daily_movement where merchant_id = %(merchant_id)s::bigint and day < %(since_day)s::int
 group by account_id, currency;

-- name: list_day_ends
-- What each day changed on the accounts.
select day, account_id, currency::text as currency, sum(in_units) - sum(out_units) as units
  from daily_movement
 where merchant_id = %(merchant_id)s::bigint and day >= %(since_day)s::int and day < %(until_day)s::int
 group by day, account_id, currency;

-- name: list_fees
-- The fees of a period, by day, currency and kind.
select day, currency::text as currency, kind::text as kind, sum(in_units) as units, sum(postings)::bigint as postings
  from daily_movement
 where merchant_id = %(merchant_id)s::bigint and day >= %(since_day)s::int and day < %(until_day)s::int
   and account_id = any(%(fees_ids)s::int[]) and in_units > 0
 group by day, currency, kind;

-- name: rank_fees
-- The merchants with the most fees in a period. Each book's days are looked up by themselves, so years of other days cost
-- nothing.
select b.merchant_id, m.name, d.currency, sum(d.in_units) as units, sum(d.postings)::bigint as postings
  from book b
  join merchant m on m.merchant_id = b.merchant_id
 cross join lateral (
       select currency::text as currency, in_units, postings from daily_movement
        where merchant_id = b.merchant_id and day >= %(since_day)s::int and day < %(until_day)s::int
          and account_id = any(%(fees_ids)s::int[]) and in_units > 0 offset 0) d
 where b.is_open
 group by b.merchant_id, m.name, d.currency;

-- name: list_books
-- The next open books of the cell.
select merchant_id from book where merchant_id > %(after)s::bigint and is_open order by merchant_id limit %(page)s::int;

-- name: close_clocks
-- From now on no entry of these books is dated before a moment. A group that was judged before is judged again.
update book set closed_ms = %(until_ms)s::bigint, version = %(version)s::uuid
 where merchant_id = any(%(merchant_ids)s::bigint[]) and is_open and closed_ms < %(until_ms)s::bigint;

-- name: sum_of_books
-- As sum_movements, for some books.
select merchant_id, account_id, currency::text as currency, kind::text as kind, sum(in_units) as in_units, sum(out_units) as out_units,
       sum(postings)::bigint as postings
  from daily_movement
 where merchant_id = any(%(merchant_ids)s::bigint[]) and day >= %(since_day)s::int and day < %(until_day)s::int
 group by merchant_id, account_id, currency, kind;

-- name: sum_before_of_books
-- As sum_before, for some books.
select merchant_id, account_id, currency::text as currency, sum(in_units) - sum(out_units) as units
  from daily_movement where merchant_id = any(%(merchant_ids)s::bigint[]) and day < %(since_day)s::int
 group by merchant_id, account_id, currency;

-- name: list_unready
-- Books whose entries of a period are not all added up, or which may still get some. The first entry that is not tells, since times
-- never go back.
select b.merchant_id
  from book b
  left join figure_cursor c on c.merchant_id = b.merchant_id
  left join lateral (
       select e.at_ms from entry e
        where e.merchant_id = b.merchant_id and e.entry_id > coalesce(c.entry_id, 0) order by e.entry_id limit 1) n on true
 where b.merchant_id = any(%(merchant_ids)s::bigint[]) and b.is_open
   and (n.at_ms < %(until_ms)s::bigint or greatest(b.last_ms, b.closed_ms) < %(until_ms)s::bigint);

-- name: list_differences
-- Accounts whose balance is not what their movements add up to. Where entries are not added up yet, the balance is the one before
-- the first of them.
select a.merchant_id, a.account_id, coalesce(n.units, a.balance) as ledger_units, coalesce(m.units, 0) as movement_units
  from book b
  join figure_cursor c on c.merchant_id = b.merchant_id
 cross join lateral (
       select merchant_id, account_id, balance from account
        where merchant_id = b.merchant_id and account_id <= %(last_fixed)s::bigint offset 0) a
  left join lateral (
       select f.units
         from ((select entry_id, posting_no, source_balance + amount as units from posting
                 where merchant_id = b.merchant_id and source_id = a.account_id and entry_id > c.entry_id
                 order by entry_id, posting_no limit 1)
               union all
               (select entry_id, posting_no, target_balance - amount as units from posting
                 where merchant_id = b.merchant_id and target_id = a.account_id and entry_id > c.entry_id
                 order by entry_id, posting_no limit 1)) f
        order by f.entry_id, f.posting_no limit 1) n on true
  left join (select merchant_id, account_id, sum(in_units) - sum(out_units) as units from daily_movement
              where merchant_id = any(%(merchant_ids)s::bigint[]) group by merchant_id, account_id) m
    on m.merchant_id = a.merchant_id and m.account_id = a.account_id
 where b.merchant_id = any(%(merchant_ids)s::bigint[]) and b.is_open
   and coalesce(n.units, a.balance) <> coalesce(m.units, 0);

-- name: read_lag
-- Whether the movements of one book, or of all, are complete, and when they were last added.
select coalesce(sum(b.entry_count - coalesce(c.entries, 0)), 0)::bigint as missing, max(c.moved_ms) as moved_ms
  from book b left join figure_cursor c on c.merchant_id = b.merchant_id
 where (%(merchant_id)s::bigint is null or b.merchant_id = %(merchant_id)s::bigint) and b.is_open;
