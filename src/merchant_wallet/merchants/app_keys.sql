-- The keys of merchants: their names, limits and secrets. `app_keys.py` runs these. Key 1 is the merchant's first one.

-- name: list_keys
-- All keys of a merchant, also revoked ones, with the number of their valid secrets, when the older one ends, and
-- the number of the newest one. That is valid until the key is revoked, and each roll raises it.
select n.key_no, coalesce(k.app_key, m.app_key) as app_key, coalesce(k.name, '') as name,
       coalesce(k.operations, '{}') as operations, coalesce(k.networks, '{}') as networks,
       coalesce(k.created_ms, m.created_ms) as created_ms, coalesce(k.created_by, '') as created_by,
       k.revoked_ms, u.used_ms, s.live_secrets, s.overlap_ends_ms, s.newest_secret_no
  from merchant m
 cross join lateral (
       select 1 as key_no
        union
       select o.key_no from merchant_key o where o.merchant_id = m.merchant_id) n
  left join merchant_key k on k.merchant_id = m.merchant_id and k.key_no = n.key_no
  left join merchant_key_use u on u.merchant_id = m.merchant_id and u.key_no = n.key_no
 cross join lateral (
       select count(*)::int as live_secrets, min(v.expires_ms) as overlap_ends_ms,
              max(v.secret_no) as newest_secret_no
         from (select f.secret_no, f.expires_ms from merchant_secret f
                where n.key_no = 1 and f.merchant_id = m.merchant_id and f.purpose = 'app' and f.retired_ms is null
                union all
               select g.secret_no, g.expires_ms from merchant_key_secret g
                where g.merchant_id = m.merchant_id and g.key_no = n.key_no and g.retired_ms is null) v
        where v.expires_ms is null or v.expires_ms > %(at_ms)s::bigint) s
 where m.merchant_id = %(merchant_id)s::bigint
 order by n.key_no;

-- name: insert_key
-- A further key.
insert into merchant_key (merchant_id, key_no, app_key, name, operations, networks, created_ms, created_by)
values (%(merchant_id)s::bigint, %(key_no)s::int, %(app_key)s::text, %(name)s::text, %(operations)s::text[],
        %(networks)s::text[], %(created_ms)s::bigint, %(created_by)s::text);

-- name: write_key
-- The name and the limits of a key. The first key has no row until then.
insert into merchant_key as k (merchant_id, key_no, app_key, name, operations, networks, created_ms, created_by)
values (%(merchant_id)s::bigint, %(key_no)s::int, %(app_key)s::text, %(name)s::text, %(operations)s::text[],
        %(networks)s::text[], %(created_ms)s::bigint, %(created_by)s::text)
on conflict (merchant_id, key_no) do update
   set name = excluded.name, operations = excluded.operations, networks = excluded.networks;

-- name: revoke_key
-- Revokes a key for ever. The row stays, so its number and its appKey are never given again.
update merchant_key set revoked_ms = %(revoked_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and key_no = %(key_no)s::int and revoked_ms is null;

-- name: read_key_secrets
-- All secrets that a further key ever had, oldest first.
select s.secret_no, s.retired_ms
  from merchant_key_secret s
 where s.merchant_id = %(merchant_id)s::bigint and s.key_no = %(key_no)s::int order by s.secret_no;

-- name: insert_key_secret
-- A sealed secret of a further key.
insert into merchant_key_secret (merchant_id, key_no, secret_no, sealed, created_ms)
values (%(merchant_id)s::bigint, %(key_no)s::int, %(secret_no)s::int, %(sealed)s::bytea, %(created_ms)s::bigint);

-- name: end_key_secret
-- Ends a secret of a further key: now, or at a later time.
update merchant_key_secret
   set expires_ms = coalesce(%(expires_ms)s::bigint, expires_ms), retired_ms = %(retired_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and key_no = %(key_no)s::int and secret_no = %(secret_no)s::int;
