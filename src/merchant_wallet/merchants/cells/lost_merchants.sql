-- Merchants that a restored home does not know. `lost_merchants.py` runs these.

-- name: list_merchants
-- What a cell has of its merchants, also of those whose book is closed here: it may be the last copy. A book without entries keeps the
-- time when it was opened.
select b.merchant_id, b.is_open, b.settings_version, b.id_range, b.next_range, m.name, m.currency_mode, m.deposit_notify_url, m.require_pin, m.frame_origins,
       least(b.last_ms, (select e.at_ms from entry e where e.merchant_id = b.merchant_id order by e.entry_id limit 1)) as first_ms
  from book b join merchant m on m.merchant_id = b.merchant_id order by b.merchant_id;

-- name: list_unknown
-- Those of these merchants that home does not know.
select u.merchant_id from unnest(%(merchant_ids)s::bigint[]) u (merchant_id)
  left join merchant m on m.merchant_id = u.merchant_id where m.merchant_id is null order by u.merchant_id;

-- name: list_younger
-- Merchants that home has created after the first trace of the book with their number: it is another merchant's.
select m.merchant_id, m.name
  from unnest(%(merchant_ids)s::bigint[], %(first_ms)s::bigint[]) u (merchant_id, first_ms)
  join merchant m on m.merchant_id = u.merchant_id and m.created_ms > u.first_ms order by m.merchant_id limit 1;

-- name: list_taken
-- A range of these that home has given to another merchant.
select u.merchant_id, r.range_no, r.merchant_id as owner_id
  from unnest(%(merchant_ids)s::bigint[], %(id_ranges)s::int[], %(next_ranges)s::int[]) u (merchant_id, id_range, next_range)
  join id_range r on r.range_no in (u.id_range, u.next_range) and r.merchant_id <> u.merchant_id
 order by r.range_no limit 1;

-- name: insert_merchant
-- The merchant with its id. Its settings wait to be carried, since its cell must hear that it is suspended.
insert into merchant (merchant_id, name, app_key, status, currency_mode, deposit_notify_url, require_pin, frame_origins, created_ms,
                      cell_id, settings_version, carried_version)
values (%(merchant_id)s::bigint, %(name)s::text, %(app_key)s::text, %(status)s::text, %(currency_mode)s::text,
        %(deposit_notify_url)s::text, %(require_pin)s::boolean, %(frame_origins)s::text[], %(created_ms)s::bigint,
        %(cell_id)s::int, %(settings_version)s::bigint + 1, %(settings_version)s::bigint);
