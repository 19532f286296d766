-- What a merchant's cell has of it before its first entry, and the version of its settings. `books.py` runs these.

-- name: insert_book
-- A merchant's book: lock, clock, id counter, head of the chain.
insert into book (merchant_id, id_range, head_hash, last_ms, settings_version)
values (%(merchant_id)s::bigint, %(range_no)s::int, %(head_hash)s::bytea, %(last_ms)s::bigint, %(settings_version)s::bigint)
on conflict (merchant_id) do nothing;

-- name: read_closed_ms
-- The end of the newest month whose figures were made, in home. A new book begins after it.
select coalesce((extract(epoch from (max(month) || '-01')::date + interval '1 month') * 1000)::bigint, 0) as closed_ms from month_report;

-- name: insert_accounts
-- The fixed accounts of a new book.
insert into account (merchant_id, account_id, kind, currency)
select %(merchant_id)s::bigint, u.*
  from unnest(%(account_ids)s::bigint[], %(kinds)s::text[], %(currencies)s::text[]) u
on conflict (merchant_id, account_id) do nothing;

-- name: change_book
-- Takes the book's lock and tells it the version of the settings. Requests made under an older version are refused. No row if
-- the book has this version already, or a newer one, or is closed.
update book set settings_version = %(settings_version)s::bigint, version = %(version)s::uuid
 where merchant_id = %(merchant_id)s::bigint and settings_version < %(settings_version)s::bigint and is_open
returning entry_count;
