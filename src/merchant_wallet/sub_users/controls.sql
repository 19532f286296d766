-- Sub-users and their controls. `controls.py` runs these.

-- name: lock_book
-- Locks the book and moves its version: a running debit ends first, and the next one sees the change. No row if
-- the book is closed.
update book set version = %(version)s::uuid where merchant_id = %(merchant_id)s::bigint and is_open returning merchant_id;

-- name: write_controls
-- Changes the controls. A control that was not given keeps its value.
update sub_user
   set {changed_controls}
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint;

-- fragment: sub_users
-- Sub-users with their balances.
select s.user_id, s.ext_user_id, s.username, a.currency, a.balance as balance_units, s.evm_address, s.tron_address,
       {controls}, s.pin_hash is not null as has_pin,
       s.pin_set_ms, s.pin_locked_until_ms, s.links_void_until_ms, a.day, a.day_debited as day_debited_units, s.created_ms
  from sub_user s
  join account a on a.merchant_id = s.merchant_id and a.account_id = s.user_id;

-- name: read_sub_user
-- One sub-user by the merchant's own id.
{sub_users}
 where s.merchant_id = %(merchant_id)s::bigint and s.ext_user_id = %(ext_user_id)s::text;

-- name: read_user
-- One sub-user by the platform's id.
{sub_users}
 where s.merchant_id = %(merchant_id)s::bigint and s.user_id = %(user_id)s::bigint;

-- name: list_sub_users
-- A page of a merchant's sub-users, oldest first.
{sub_users}
 where s.merchant_id = %(merchant_id)s::bigint and s.user_id > %(after_user_id)s::bigint
 order by s.user_id
 limit %(limit)s::int;

-- name: search_sub_users
-- A page of sub-users found by the start of the merchant's id, by the platform's id or by an address.
{sub_users}
 where s.merchant_id = %(merchant_id)s::bigint and s.user_id > %(after_user_id)s::bigint
   and s.user_id in (
       select p.user_id from sub_user p
        where p.merchant_id = %(merchant_id)s::bigint and starts_with(p.ext_user_id, %(search)s::text)
       union all
       select %(user_id)s::bigint
       union all
       select w.user_id from wallet_address w
        where w.merchant_id = %(merchant_id)s::bigint and w.address = %(address)s::bytea)
 order by s.user_id
 limit %(limit)s::int;
