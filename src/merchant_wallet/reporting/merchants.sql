-- Lists of merchants with their balances and the size of their books. Only the few fixed accounts of a book are read.

-- fragment: page_rows
-- The columns of a list, for the merchants in `found`.
select m.merchant_id, m.name, m.app_key, m.status, m.currency_mode, m.created_ms, b.entry_count, b.last_ms,
       coalesce(c.sub_users, 0) as sub_users, a.*
  from found m
  left join book b on b.merchant_id = m.merchant_id
  left join figure_cursor c on c.merchant_id = m.merchant_id
 cross join lateral (
       select coalesce(sum(a.balance) filter (where a.kind = 'merchant' and a.currency = 'USDT'), 0)::bigint as usdt_units,
              coalesce(sum(a.balance) filter (where a.kind = 'merchant' and a.currency = 'KFB'), 0)::bigint as kfb_units,
              coalesce(sum(a.balance) filter (where a.kind = 'hold'), 0)::bigint as hold_units,
              -coalesce(sum(a.balance) filter (where a.currency = 'USDT'), 0)::bigint as sub_user_usdt_units,
              -coalesce(sum(a.balance) filter (where a.currency = 'KFB'), 0)::bigint as sub_user_kfb_units
         from account a where a.merchant_id = m.merchant_id and a.account_id <= %(last_fixed)s::bigint) a;

-- name: page_by_id
-- Merchants by id.
with found as (
    select * from merchant m
     where (m.merchant_id) > (%(key_0)s::bigint) and m.status = any(%(statuses)s::text[])
     order by m.merchant_id asc limit %(page)s::int)
{page_rows}
 order by m.merchant_id asc;

-- name: read_names
-- The names of some merchants.
select merchant_id, name from merchant where merchant_id = any(%(merchant_ids)s::bigint[]);

-- name: page_by_name
-- Merchants by name, in byte order.
with found as (
    select * from merchant m
     where (m.name collate "C", m.merchant_id) > (%(key_0)s::text, %(key_1)s::bigint) and m.status = any(%(statuses)s::text[])
     order by m.name collate "C" asc, m.merchant_id asc limit %(page)s::int)
{page_rows}
 order by m.name collate "C" asc, m.merchant_id asc;

-- name: find_merchants
-- The merchants with this id, app key or part of a name, the best match first.
select m.merchant_id, m.name, m.app_key, m.status, m.currency_mode, m.created_ms,
       case when m.merchant_id = %(merchant_id)s::bigint then 1 when m.app_key = %(word)s::text then 2
            when lower(m.name) = lower(%(word)s::text) then 3 else 4 end as how
  from merchant m
 where m.merchant_id = %(merchant_id)s::bigint or m.app_key = %(word)s::text
    or strpos(lower(m.name), lower(%(word)s::text)) > 0
 order by how, m.merchant_id limit %(limit)s::int;
