-- A book's entries, newest first. The index is chosen by account or by kind. Other filters are applied to the next `stride`
-- rows of that index.

-- fragment: wanted_books
-- The books of a look-up over all merchants `m`: the one that is wanted, or all that are open.
(m.merchant_id = %(merchant_id)s::bigint or (%(merchant_id)s::bigint is null and m.{open_books}))

-- fragment: columns
-- The columns of an entry in a list: `e` is the entry, `p` its first posting.
e.merchant_id, e.entry_id, e.kind::text as kind, e.mc_order_id::text as mc_order_id, e.at_ms, e.rate_e8, p.source_id,
       p.target_id, p.currency, p.amount::bigint as amount_units;

-- fragment: first_posting
-- The first posting of an entry.
left join posting p on p.merchant_id = e.merchant_id and p.entry_id = e.entry_id and p.posting_no = 1;

-- fragment: next_entries
-- The next entries of an index.
(e.entry_id) < (%(key_0)s::bigint)
       and e.entry_id >= %(from_id)s::bigint and e.entry_id < %(until_id)s::bigint
     order by e.entry_id desc limit %(stride)s::int;

-- fragment: filter_by_kind
-- Keeps the entries of the given kinds.
found as (
    select s.* from strip s
     where s.kind = any(%(kinds)s::text[])
     order by s.entry_id desc limit %(page)s::int),
edge as (
    select s.* from strip s
     where (select count(*) from strip) >= %(stride)s::int and (select count(*) from found) < %(page)s::int
     order by s.entry_id asc limit 1)
select {columns}, e.is_edge
  from (select f.*, false as is_edge from found f union all select e.*, true from edge e) e
  {first_posting}
 order by e.is_edge, e.entry_id desc;

-- name: page_of_book
-- A book's entries, of all kinds or some.
with strip as materialized (
    select * from entry e
     where e.merchant_id = %(merchant_id)s::bigint and {next_entries}),
{filter_by_kind};

-- name: page_rare
-- Entries that are neither transfers nor exchanges, by their own index.
with strip as materialized (
    select e.* from unnest(%(kinds)s::text[]) k (kind)
     cross join lateral (
           select * from entry e
            where e.merchant_id = %(merchant_id)s::bigint and e.kind = k.kind
              and e.kind not in ('user_to_merchant', 'merchant_to_user', 'exchange')
              and {next_entries}) e
     order by e.entry_id desc limit %(stride)s::int),
{filter_by_kind};

-- name: page_of_account
-- Entries that touch one account, of all kinds or some, by the index of each side.
with strip as materialized (
    select e.* from (
            (select distinct e.entry_id from posting e
             where e.merchant_id = %(merchant_id)s::bigint and e.source_id = %(account_id)s::bigint
               and {next_entries})
            union
            (select distinct e.entry_id from posting e
             where e.merchant_id = %(merchant_id)s::bigint and e.target_id = %(account_id)s::bigint
               and {next_entries})
            order by entry_id desc limit %(stride)s::int) k
      join entry e on e.merchant_id = %(merchant_id)s::bigint and e.entry_id = k.entry_id
     order by e.entry_id desc limit %(stride)s::int),
{filter_by_kind};

-- name: find_by_mc_order_id
-- The entries with an order id, one index look-up for each merchant. A withdrawal and an exchange may have the same id. Of an
-- archived entry the database has what a list shows.
select {columns}
  from merchant m
 cross join lateral (select * from entry e
                      where e.merchant_id = m.merchant_id and e.mc_order_id = %(mc_order_id)s::text limit 20) e
  {first_posting}
 where {wanted_books}
union all
select o.merchant_id, o.entry_id, o.kind::text, o.mc_order_id::text, o.at_ms, o.rate_e8, o.source_id, o.target_id, o.currency, o.amount
  from merchant m
 cross join lateral (select * from archived_order o
                      where o.merchant_id = m.merchant_id and o.mc_order_id = %(mc_order_id)s::text limit 20) o
 where {wanted_books}
 order by merchant_id, entry_id limit %(limit)s::int;

-- name: find_entry
-- Whether there is an entry, in the journal or in the archive. In an archived month only the book's own ids are looked for.
select e.kind::text as kind from entry e
 where e.merchant_id = %(merchant_id)s::bigint and e.entry_id = %(entry_id)s::bigint
union all
select 'archived' from archived_month a
 where a.merchant_id = %(merchant_id)s::bigint
   and %(entry_id)s::bigint between a.first_id and a.removed_id;

-- name: read_previous_hash
-- The hash of the entry before.
select hash from entry
 where merchant_id = %(merchant_id)s::bigint and entry_id < %(entry_id)s::bigint order by entry_id desc limit 1;

-- name: last_entry
-- The end of the journal, where a search by time begins.
select entry_id from entry where merchant_id = %(merchant_id)s::bigint order by entry_id desc limit 1;

-- name: list_postings
-- The postings of some entries, in order.
select entry_id, source_id, target_id, currency::text as currency, amount::bigint as amount_units, source_balance, target_balance
  from posting
 where merchant_id = %(merchant_id)s::bigint and entry_id = any(%(entry_ids)s::bigint[]) order by entry_id, posting_no;
