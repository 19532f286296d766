-- Merchants, their secrets, and what opening a book writes. `store.py` runs these.

-- name: read_merchant
-- A merchant with a key and its secrets, newest first, and the version of its settings, in one round trip and one snapshot. Found
-- by id, and then with its first key, or by an appKey that is not revoked.
with named as (
       select %(merchant_id)s::bigint as merchant_id, 1 as key_no where %(merchant_id)s::bigint is not null
        union all
       select f.merchant_id, 1 from merchant f where f.app_key = %(app_key)s::text
        union all
       select g.merchant_id, g.key_no from merchant_key g where g.app_key = %(app_key)s::text and g.revoked_ms is null
        limit 1)
select m.merchant_id, m.name, coalesce(k.app_key, m.app_key) as app_key, m.status, m.currency_mode, m.sign_method, m.networks,
       m.disabled_operations,
       m.transfer_fee_rate_e8, m.withdraw_fee_rate_e8, m.withdraw_fee_min_units, m.approval_limit_units,
       m.second_approval_limit_units,
       m.daily_limit_units, m.allowed_addresses, m.auto_register, m.require_pin, m.rate_limit,
       m.deposit_notify_url, m.frame_origins, m.brand_colour, m.brand_logo, m.customer_url,
       m.billing_address, m.tax_id,
       m.account_xpubs, m.payout_limit_units, m.payout_limit_count, m.payout_window_h,
       m.first_payout_limit_units, m.payout_hours,
       m.created_ms, m.cell_id, m.settings_version, m.carried_version >= m.settings_version as is_carried,
       n.key_no, coalesce(k.operations, '{}') as key_operations, coalesce(k.networks, '{}') as key_networks,
       a.secret_nos, a.sealed, a.overlap_ends_ms, c.callback_no, c.callback_sealed
  from named n
  join merchant m on m.merchant_id = n.merchant_id
  left join merchant_key k on k.merchant_id = n.merchant_id and k.key_no = n.key_no
  cross join lateral (
       select array_agg(v.secret_no order by v.secret_no desc) as secret_nos,
              array_agg(v.sealed order by v.secret_no desc) as sealed, min(v.expires_ms) as overlap_ends_ms
         from (select s.secret_no, s.sealed, s.expires_ms
                 from merchant_secret s
                where n.key_no = 1 and s.merchant_id = m.merchant_id and s.purpose = 'app' and s.retired_ms is null
                union all
               select t.secret_no, t.sealed, t.expires_ms
                 from merchant_key_secret t
                where t.merchant_id = m.merchant_id and t.key_no = n.key_no and t.retired_ms is null) v) a
  cross join lateral (
       select s.secret_no as callback_no, s.sealed as callback_sealed
         from merchant_secret s
        where s.merchant_id = m.merchant_id and s.purpose = 'callback' and s.retired_ms is null
        order by s.secret_no desc limit 1) c;

-- name: read_settings_version
-- The current version of a merchant's settings, to check whether a cached merchant is current.
select settings_version from merchant where merchant_id = %(merchant_id)s::bigint;

-- name: list_merchants
-- Every merchant, for the operator.
select merchant_id, name, app_key, status, currency_mode, created_ms from merchant order by merchant_id;

-- name: find_merchants
-- Merchants that a typed word may mean. `how` says what matched, best match first.
select merchant_id, name, app_key, status, currency_mode, created_ms,
       case when merchant_id = %(merchant_id)s::bigint then 1 when name = %(word)s::text and app_key <> %(word)s::text then 3 else 2 end as how
  from merchant
 where merchant_id = %(merchant_id)s::bigint or app_key = %(word)s::text or name = %(word)s::text
    or merchant_id = (select k.merchant_id from merchant_key k where k.app_key = %(word)s::text)
 order by how, merchant_id;

-- name: insert_merchant
-- A new merchant with default settings. The table gives the id. In the default cell its book is opened in the same transaction.
insert into merchant (name, app_key, currency_mode, created_ms, cell_id, carried_version)
values (%(name)s::text, %(app_key)s::text, 'KFB', %(created_ms)s::bigint, %(cell_id)s::int, (%(cell_id)s::int = 0)::int)
returning merchant_id;

-- name: write_account_xpubs
-- The extended public keys of a merchant's wallet addresses. They never change afterwards.
update merchant set account_xpubs = %(account_xpubs)s::jsonb where merchant_id = %(merchant_id)s::bigint;

-- name: raise_settings_version
-- Begins a change: locks the merchant and raises the version of its settings. Says whether its book is in the default cell,
-- which changes in the same transaction. An apart cell gets the version after it.
update merchant
   set settings_version = settings_version + 1,
       carried_version = case when cell_id = 0 then settings_version + 1 else carried_version end
 where merchant_id = %(merchant_id)s::bigint
returning settings_version, cell_id = 0 as is_home;

-- name: write_settings
-- All settings at once: the row as it was read under the book's lock, and what the operator changed.
update merchant
   set name = %(name)s::text, currency_mode = %(currency_mode)s::text, sign_method = %(sign_method)s::text,
       networks = %(networks)s::text[], disabled_operations = %(disabled_operations)s::text[],
       transfer_fee_rate_e8 = %(transfer_fee_rate_e8)s::bigint, withdraw_fee_rate_e8 = %(withdraw_fee_rate_e8)s::bigint,
       withdraw_fee_min_units = %(withdraw_fee_min_units)s::bigint,
       approval_limit_units = %(approval_limit_units)s::bigint,
       second_approval_limit_units = %(second_approval_limit_units)s::bigint, daily_limit_units = %(daily_limit_units)s::bigint,
       allowed_addresses = %(allowed_addresses)s::text[], auto_register = %(auto_register)s::boolean,
       require_pin = %(require_pin)s::boolean, rate_limit = %(rate_limit)s::int,
       deposit_notify_url = %(deposit_notify_url)s::text, frame_origins = %(frame_origins)s::text[],
       payout_limit_units = %(payout_limit_units)s::bigint, payout_limit_count = %(payout_limit_count)s::int,
       payout_window_h = %(payout_window_h)s::int, first_payout_limit_units = %(first_payout_limit_units)s::bigint,
       payout_hours = %(payout_hours)s::text,
       brand_colour = %(brand_colour)s::text, brand_logo = %(brand_logo)s::text, customer_url = %(customer_url)s::text,
       billing_address = %(billing_address)s::text, tax_id = %(tax_id)s::text
 where merchant_id = %(merchant_id)s::bigint;

-- name: write_status
-- Suspends or resumes. No row if the merchant has that status already.
update merchant set status = %(status)s::text where merchant_id = %(merchant_id)s::bigint and status <> %(status)s::text
returning merchant_id;

-- name: read_app_secrets
-- The numbers of all app secrets ever, oldest first, to choose the next number and to count the live ones.
select secret_no, retired_ms, expires_ms from merchant_secret
 where merchant_id = %(merchant_id)s::bigint and purpose = 'app' order by secret_no;

-- name: insert_secret
-- A sealed secret.
insert into merchant_secret (merchant_id, secret_no, purpose, sealed, created_ms)
values (%(merchant_id)s::bigint, %(secret_no)s::int, %(purpose)s::text, %(sealed)s::bytea, %(created_ms)s::bigint);

-- name: retire_secret
-- Retires a secret. The row is kept, but signs nothing any more.
update merchant_secret set retired_ms = %(retired_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and purpose = 'app' and secret_no = %(secret_no)s::int;

-- name: expire_secret
-- Lets a secret work until a time.
update merchant_secret set expires_ms = %(expires_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and purpose = 'app' and secret_no = %(secret_no)s::int;

-- name: take_address_index
-- The next address index. It is given out once. An unused index leaves a gap, which is harmless.
update merchant set next_address_index = next_address_index + 1 where merchant_id = %(merchant_id)s::bigint
returning next_address_index - 1 as address_index;

-- name: read_sealed
-- Secrets of the first and the last merchant: they show whether the master key is right. `up` reads them before it migrates, so
-- only columns that every version has are read.
select s.merchant_id, s.purpose, s.secret_no, s.sealed
  from merchant_secret s
 where s.merchant_id in (select min(merchant_id) from merchant union all select max(merchant_id) from merchant)
   and s.retired_ms is null;

-- name: read_day_facts
-- From the audit log: earlier values of some settings, before each change since a time, oldest first.
select f.key, f.value
  from audit_entry e
 cross join lateral jsonb_each(e.before) f
 where e.merchant_id = %(merchant_id)s::bigint and e.action = %(action)s::text and e.at_ms > %(since_ms)s::bigint
   and f.key = any(%(names)s::text[])
 order by e.audit_no;
