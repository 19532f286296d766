-- Lists of merchants, from home, and the size and balances of their books, from the books' cells. Only the few fixed accounts
-- of a book are read.

-- fragment: columns
-- The columns of a merchant that only home has.
m.merchant_id, m.name, m.app_key, m.status, m.currency_mode, m.created_ms;

-- name: page_by_id
-- Merchants by id.
select {columns}, m.cell_id
  from merchant m
 where (m.merchant_id) > (%(key_0)s::bigint) and m.status = any(%(statuses)s::text[])
 order by m.merchant_id asc limit %(page)s::int;

-- name: page_by_name
-- Merchants by name, in byte order.
select {columns}, m.cell_id
  from merchant m
 where (m.name collate "C", m.merchant_id) > (%(key_0)s::text, %(key_1)s::bigint) and m.status = any(%(statuses)s::text[])
 order by m.name collate "C" asc, m.merchant_id asc limit %(page)s::int;

-- name: read_some
-- Some merchants.
select {columns}, m.cell_id from merchant m where m.merchant_id = any(%(merchant_ids)s::bigint[]);

-- name: read_books
-- The books of some merchants, as far as they are in this cell.
select b.merchant_id, b.entry_count, b.last_ms, coalesce(c.sub_users, 0) as sub_users, a.*
  from book b
  left join figure_cursor c on c.merchant_id = b.merchant_id
 cross join lateral (
       select coalesce(sum(a.balance) filter (where a.kind = 'merchant' and a.currency = 'USDT'), 0)::bigint as usdt_units,
              coalesce(sum(a.balance) filter (where a.kind = 'merchant' and a.currency = 'KFB'), 0)::bigint as kfb_units,
              coalesce(sum(a.balance) filter (where a.kind = 'hold'), 0)::bigint as hold_units,
              -coalesce(sum(a.balance) filter (where a.currency = 'USDT'), 0)::bigint as sub_user_usdt_units,
              -coalesce(sum(a.balance) filter (where a.currency = 'KFB'), 0)::bigint as sub_user_kfb_units
         from account a where a.merchant_id = b.merchant_id and a.account_id <= %(last_fixed)s::bigint) a
 where b.merchant_id = any(%(merchant_ids)s::bigint[]);

-- name: read_names
-- The names of some merchants.
select merchant_id, name from merchant where merchant_id = any(%(merchant_ids)s::bigint[]);

-- name: find_merchants
-- The merchants with this id, app key or part of a name, the best match first. All, or at most one: a merchant's own people must not
-- learn from what is left out how many others there are.
select {columns},
       case when m.merchant_id = %(merchant_id)s::bigint then 1
            when m.app_key = %(word)s::text or m.merchant_id = k.merchant_id then 2
            when lower(m.name) = lower(%(word)s::text) then 3 else 4 end as how
  from merchant m
  left join merchant_key k on k.app_key = %(word)s::text
 where (m.merchant_id = %(merchant_id)s::bigint or m.app_key = %(word)s::text or m.merchant_id = k.merchant_id
        or strpos(lower(m.name), lower(%(word)s::text)) > 0)
   and (%(only_id)s::bigint is null or m.merchant_id = %(only_id)s::bigint)
 order by how, m.merchant_id limit %(limit)s::int;
