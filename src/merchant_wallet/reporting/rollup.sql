-- Adds up the books without locking them. The entries of many books, their sums and the cursors are one commit.

-- name: list_behind
-- The books with entries that no figure contains.
select b.merchant_id, b.entry_count - coalesce(c.entries, 0) as missing
  from book b left join figure_cursor c on c.merchant_id = b.merchant_id
 where b.entry_count > coalesce(c.entries, 0) and b.is_open;

-- name: open_cursors
-- The books' cursors, created at the beginning if there is none. In the order of ids, so that two workers do not deadlock.
insert into figure_cursor (merchant_id)
select u.merchant_id from unnest(%(merchant_ids)s::bigint[]) u (merchant_id) order by u.merchant_id
on conflict (merchant_id) do nothing;

-- name: lock_cursors
-- One worker at a time adds up a book, if it is open. No writer of the book asks for these rows.
select merchant_id, entry_id from figure_cursor c
 where merchant_id = any(%(merchant_ids)s::bigint[])
   and exists (select from book b where b.merchant_id = c.merchant_id and b.is_open)
 order by merchant_id for update skip locked;

-- name: avoid_scans
-- A plan that is kept must not read a table whole after the table has grown.
select set_config('enable_seqscan', 'off', true);

-- name: move_cursors
-- Moves the cursors over the next entries of some books. A book's groups commit one after the other, so a statement sees no gap
-- in a journal. What it returns are the entries for `add_entries`, which sees entries that were committed meanwhile.
update figure_cursor c
   set entry_id = n.last_id, entries = c.entries + n.entries, sub_users = c.sub_users + n.sub_users, moved_ms = %(now_ms)s::bigint
  from (select u.merchant_id, f.*
          from unnest(%(merchant_ids)s::bigint[], %(entry_ids)s::bigint[], %(shares)s::int[]) u (merchant_id, entry_id, share)
         cross join lateral (
               select max(e.entry_id) as last_id, count(*) as entries,
                      count(*) filter (where e.kind = 'register') as sub_users
                 from (select entry_id, kind from entry
                        where merchant_id = u.merchant_id and entry_id > u.entry_id order by entry_id limit u.share) e) f
         where f.entries > 0) n
 where c.merchant_id = n.merchant_id
returning c.merchant_id, c.entry_id as last_id, n.entries;

-- name: add_entries
-- Adds the entries that the cursors have passed, by day, kind and currency, to the books' figures and to those of the
-- platform. The platform's rows are written last and in one order, so that two workers with different books do not
-- deadlock. Each entry's postings are looked up by their key: PostgreSQL can't estimate how many there are, and a join of
-- both as sets took seconds. So long a snapshot keeps all versions of busy books' rows, and every transfer must pass them.
with fresh as materialized (
    select c.merchant_id, e.*
      from unnest(%(merchant_ids)s::bigint[], %(entry_ids)s::bigint[], %(last_ids)s::bigint[]) c (merchant_id, entry_id, last_id)
     cross join lateral (
           select entry_id, kind, (at_ms / 86400000)::int as day from entry
            where merchant_id = c.merchant_id and entry_id > c.entry_id and entry_id <= c.last_id
            order by entry_id offset 0) e),
moved as (
    select f.merchant_id, f.day, f.kind, m.*
      from fresh f
     cross join lateral (
           select p.currency,
                  coalesce(sum(p.amount) filter (where p.target_id <> all(%(fees_ids)s::bigint[])), 0) as amount,
                  coalesce(sum(p.amount) filter (where p.target_id = any(%(fees_ids)s::bigint[])), 0) as fee
             from posting p
            where p.merchant_id = f.merchant_id and p.entry_id = f.entry_id
            group by p.currency) m
    union all
    select f.merchant_id, f.day, f.kind, a.currency, 0, 0
      from fresh f
     cross join lateral (
           select currency from account where merchant_id = f.merchant_id and account_id = f.entry_id offset 0) a
     where f.kind = 'register'),
sums as materialized (
    select merchant_id, day, kind, currency, count(*) as entries, sum(amount) as amount, sum(fee) as fee
      from moved group by merchant_id, day, kind, currency)
insert into daily_figure as d (merchant_id, day, kind, currency, entries, amount, fee)
select merchant_id, day, kind, currency, entries, amount, fee from sums
 union all
select 0, day, kind, currency, sum(entries)::bigint, sum(amount), sum(fee) from sums group by day, kind, currency
 order by merchant_id desc, day, kind, currency
on conflict (merchant_id, day, kind, currency) do update
   set entries = d.entries + excluded.entries, amount = d.amount + excluded.amount, fee = d.fee + excluded.fee;

-- name: add_movements
-- What moved on each account in these entries, in and out. A posting leaves one account and reaches another. Account 0 stands for
-- all sub-users' wallets. The platform's rows are written last and in one order, as in `add_entries`.
with fresh as materialized (
    select c.merchant_id, e.*
      from unnest(%(merchant_ids)s::bigint[], %(entry_ids)s::bigint[], %(last_ids)s::bigint[]) c (merchant_id, entry_id, last_id)
     cross join lateral (
           select entry_id, kind, (at_ms / 86400000)::int as day from entry
            where merchant_id = c.merchant_id and entry_id > c.entry_id and entry_id <= c.last_id
            order by entry_id offset 0) e),
moves as (
    select f.merchant_id, f.day, f.kind, p.*
      from fresh f
     cross join lateral (
           select source_id, target_id, currency, amount from posting
            where merchant_id = f.merchant_id and entry_id = f.entry_id offset 0) p),
sides as materialized (
    select m.merchant_id, m.day, case when s.account_id <= %(last_fixed)s::bigint then s.account_id else 0 end as account_id,
           m.currency, m.kind, sum(s.in_units) as in_units, sum(s.out_units) as out_units, count(*) as postings
      from moves m
     cross join lateral (values (m.source_id, 0::bigint, m.amount::bigint), (m.target_id, m.amount::bigint, 0::bigint))
           s (account_id, in_units, out_units)
     group by 1, 2, 3, 4, 5)
insert into daily_movement as d (merchant_id, day, account_id, currency, kind, in_units, out_units, postings)
select merchant_id, day, account_id, currency, kind, in_units, out_units, postings from sides
 union all
select 0, day, account_id, currency, kind, sum(in_units), sum(out_units), sum(postings)::bigint
  from sides group by day, account_id, currency, kind
 order by merchant_id desc, day, 3, currency, kind
on conflict (merchant_id, day, account_id, currency, kind) do update
   set in_units = d.in_units + excluded.in_units, out_units = d.out_units + excluded.out_units,
       postings = d.postings + excluded.postings;
