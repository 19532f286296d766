-- Sub-users of all merchants or one. For all merchants there is one index look-up per merchant.

-- fragment: wanted_books
-- The books of a look-up over all merchants `m`: the one that is wanted, or all that are open.
(m.merchant_id = %(merchant_id)s::bigint or (%(merchant_id)s::bigint is null and m.{open_books}))

-- fragment: columns
-- The columns of a sub-user in a list: `u` is the sub-user, `m` its merchant, `a` its account.
u.merchant_id, m.name as merchant_name, u.user_id, u.ext_user_id, u.username, a.currency::text as currency,
       a.balance as balance_units, u.evm_address, u.tron_address, u.paused, u.pin_hash is not null as has_pin, u.created_ms;

-- fragment: account_of_merchant
-- The account of each sub-user that was found.
join account a on a.merchant_id = u.merchant_id and a.account_id = u.user_id
 where {wanted_books};

-- name: page_by_id
-- Sub-users by merchant, oldest first.
select {columns}
  from (select * from sub_user u
         where u.merchant_id >= %(least_merchant)s::bigint and u.merchant_id <= %(last_merchant)s::bigint
           and (u.merchant_id, u.user_id) > (%(key_0)s::bigint, %(key_1)s::bigint)
           and u.{open_books}
         order by u.merchant_id asc, u.user_id asc limit %(page)s::int) u
  join merchant m on m.merchant_id = u.merchant_id
  join account a on a.merchant_id = u.merchant_id and a.account_id = u.user_id
 order by u.merchant_id asc, u.user_id asc;

-- name: page_by_ext
-- Sub-users whose extUserId starts with a text, in byte order.
select {columns}
  from merchant m
 cross join lateral (
       select * from sub_user u
        where u.merchant_id = m.merchant_id
          and u.ext_user_id collate "C" >= %(least)s::text and u.ext_user_id collate "C" < %(beyond)s::text
          and (u.ext_user_id collate "C") >= (%(key_0)s::text)
          and (u.ext_user_id collate "C", u.merchant_id) > (%(key_0)s::text, %(key_1)s::bigint)
        order by u.ext_user_id collate "C" asc limit %(page)s::int) u
  {account_of_merchant}
 order by u.ext_user_id collate "C" asc, u.merchant_id asc limit %(page)s::int;

-- name: page_by_name
-- Sub-users whose username starts with a text, in any case.
select {columns},
       lower(u.username) as low_name
  from merchant m
 cross join lateral (
       select * from sub_user u
        where u.merchant_id = m.merchant_id
          and lower(u.username) collate "C" >= lower(%(least)s::text) and lower(u.username) collate "C" < lower(%(beyond)s::text)
          and (lower(u.username) collate "C") >= (%(key_0)s::text)
          and (lower(u.username) collate "C", u.merchant_id, u.user_id) > (%(key_0)s::text, %(key_1)s::bigint, %(key_2)s::bigint)
        order by lower(u.username) collate "C" asc, u.user_id asc limit %(page)s::int) u
  {account_of_merchant}
 order by lower(u.username) collate "C" asc, u.merchant_id asc, u.user_id asc limit %(page)s::int;

-- name: find_sub_users
-- The sub-users with exactly this extUserId or this address, one index look-up for each merchant.
select {columns}
  from merchant m
 cross join lateral (
       select * from sub_user u where u.merchant_id = m.merchant_id and u.ext_user_id = %(ext_user_id)s::text
       union
       select u.* from wallet_address w
         join sub_user u on u.merchant_id = w.merchant_id and u.user_id = w.user_id
        where w.merchant_id = m.merchant_id and w.address = %(address)s::bytea) u
  {account_of_merchant}
 order by u.merchant_id, u.user_id limit %(limit)s::int;

-- name: find_by_address
-- The sub-user of a merchant's address.
select u.ext_user_id
  from wallet_address w join sub_user u on u.merchant_id = w.merchant_id and u.user_id = w.user_id
 where w.merchant_id = %(merchant_id)s::bigint and w.address = %(address)s::bytea;

-- name: show_sub_user
-- One sub-user. Its id names its book.
select {columns}
  from sub_user u
  join merchant m on m.merchant_id = u.merchant_id
  join account a on a.merchant_id = u.merchant_id and a.account_id = u.user_id
 where u.merchant_id = %(merchant_id)s::bigint and u.user_id = %(user_id)s::bigint;
