-- Carries merchants from home to their apart cells. `carrying.py` runs these.

-- name: read_waiting
-- What the cell of a merchant's book should have: the version of the settings, the columns of the cell's copy, and what a new book
-- begins with. `carried_version` is 0 until the book was opened. No row if the book is in another cell.
select m.merchant_id, m.settings_version, m.carried_version, m.name, m.status, m.currency_mode, m.deposit_notify_url,
       m.require_pin, m.frame_origins, m.account_xpubs, m.created_ms,
       (select min(r.range_no) from id_range r where r.merchant_id = m.merchant_id) as range_no
  from merchant m
 where m.merchant_id = %(merchant_id)s::bigint and m.cell_id = %(cell_id)s::int;

-- name: lock_unopened
-- Holds a merchant whose book is not open yet, so that one process at a time opens it and nobody moves it meanwhile.
select merchant_id from merchant
 where merchant_id = %(merchant_id)s::bigint and cell_id = %(cell_id)s::int and carried_version = 0 for no key update;

-- name: note_carried
-- The cell has this version.
update merchant set carried_version = %(settings_version)s::bigint
 where merchant_id = %(merchant_id)s::bigint and carried_version < %(settings_version)s::bigint;

-- name: list_waiting
-- Merchants of a cell that lacks their newest settings, or their book.
select merchant_id from merchant
 where carried_version < settings_version and cell_id = %(cell_id)s::int order by merchant_id limit %(limit)s::int;

-- name: insert_copy
-- The cell's copy of a new merchant.
insert into merchant (merchant_id, name, status, currency_mode, deposit_notify_url, require_pin, frame_origins)
values (%(merchant_id)s::bigint, %(name)s::text, %(status)s::text, %(currency_mode)s::text, %(deposit_notify_url)s::text,
        %(require_pin)s::boolean, %(frame_origins)s::text[])
on conflict (merchant_id) do nothing;

-- name: write_copy
-- The cell's copy of a merchant after a change.
update merchant
   set name = %(name)s::text, status = %(status)s::text, currency_mode = %(currency_mode)s::text,
       deposit_notify_url = %(deposit_notify_url)s::text, require_pin = %(require_pin)s::boolean,
       frame_origins = %(frame_origins)s::text[]
 where merchant_id = %(merchant_id)s::bigint;
