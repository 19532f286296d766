-- Adds up the books without locking them. A batch of entries, its sums and the cursor are one commit.

-- name: list_behind
-- The books with entries that no figure contains, those with the fewest first, so that a book with a long past delays no
-- other.
select b.merchant_id, b.entry_count - coalesce(c.entries, 0) as missing
  from book b left join figure_cursor c on c.merchant_id = b.merchant_id
 where b.entry_count > coalesce(c.entries, 0)
 order by missing, b.merchant_id;

-- name: open_cursor
-- A book's cursor, created at the beginning if there is none.
insert into figure_cursor (merchant_id) values (%(merchant_id)s::bigint) on conflict (merchant_id) do nothing;

-- name: lock_cursor
-- One worker at a time adds up a book. No writer of the book asks for this row.
select entry_id from figure_cursor where merchant_id = %(merchant_id)s::bigint for update;

-- name: add_batch
-- Adds the next entries of a book, by day, kind and currency, to the book's figures and to those of the platform. A book's
-- batches commit one after the other, so a statement sees no gap in a journal. The platform's rows are written last and in
-- one order, so that two workers with different books do not deadlock.
with fresh as materialized (
    select entry_id, kind, (at_ms / 86400000)::int as day from entry
     where merchant_id = %(merchant_id)s::bigint and entry_id > %(entry_id)s::bigint
     order by entry_id limit %(batch)s::int),
bounds as materialized (
    select max(entry_id) as last_id, count(*) as entries, count(*) filter (where kind = 'register') as sub_users from fresh),
moved as (
    select p.entry_id, p.currency,
           coalesce(sum(p.amount) filter (where p.target_id <> all(%(fees_ids)s::bigint[])), 0) as amount,
           coalesce(sum(p.amount) filter (where p.target_id = any(%(fees_ids)s::bigint[])), 0) as fee
      from posting p
     where p.merchant_id = %(merchant_id)s::bigint and p.entry_id > %(entry_id)s::bigint
       and p.entry_id <= (select last_id from bounds)
     group by p.entry_id, p.currency
    union all
    select f.entry_id, a.currency, 0, 0 from fresh f
      join account a on a.merchant_id = %(merchant_id)s::bigint and a.account_id = f.entry_id
     where f.kind = 'register'),
sums as materialized (
    select f.day, f.kind, m.currency, count(*) as entries, sum(m.amount) as amount, sum(m.fee) as fee
      from fresh f join moved m on m.entry_id = f.entry_id group by f.day, f.kind, m.currency),
added as (
    insert into daily_figure as d (merchant_id, day, kind, currency, entries, amount, fee)
    select k.merchant_id, s.day, s.kind, s.currency, s.entries, s.amount, s.fee
      from sums s cross join (values (%(merchant_id)s::bigint), (0)) k (merchant_id)
     order by k.merchant_id desc, s.day, s.kind, s.currency
    on conflict (merchant_id, day, kind, currency) do update
       set entries = d.entries + excluded.entries, amount = d.amount + excluded.amount, fee = d.fee + excluded.fee)
update figure_cursor c
   set entry_id = b.last_id, entries = c.entries + b.entries, sub_users = c.sub_users + b.sub_users,
       moved_ms = %(now_ms)s::bigint
  from bounds b
 where c.merchant_id = %(merchant_id)s::bigint and b.entries > 0
returning b.entries;
