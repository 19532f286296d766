-- Merchants that a restored home does not know. `lost_merchants.py` runs these.

-- name: list_merchants
-- What a cell has of its merchants, also of those whose book is closed here: it may be the last copy.
select b.merchant_id, b.is_open, b.settings_version, m.name, m.currency_mode, m.deposit_notify_url, m.require_pin, m.frame_origins
  from book b join merchant m on m.merchant_id = b.merchant_id order by b.merchant_id;

-- name: list_unknown
-- Those of these merchants that home does not know.
select u.merchant_id from unnest(%(merchant_ids)s::bigint[]) u (merchant_id)
  left join merchant m on m.merchant_id = u.merchant_id where m.merchant_id is null order by u.merchant_id;

-- name: insert_merchant
-- The merchant with its id. Its settings wait to be carried, since its cell must hear that it is suspended.
insert into merchant (merchant_id, name, app_key, status, currency_mode, deposit_notify_url, require_pin, frame_origins, created_ms,
                      cell_id, settings_version, carried_version)
values (%(merchant_id)s::bigint, %(name)s::text, %(app_key)s::text, %(status)s::text, %(currency_mode)s::text,
        %(deposit_notify_url)s::text, %(require_pin)s::boolean, %(frame_origins)s::text[], %(created_ms)s::bigint,
        %(cell_id)s::int, %(settings_version)s::bigint + 1, %(settings_version)s::bigint);
