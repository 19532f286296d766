-- Refused requests. `buffer.py` writes them, `listing.py` reads them.

-- name: skip_commit_wait
-- A crash may lose the last second of refused requests. They must not delay commits that move money.
set local synchronous_commit = off;

-- name: limit_lock_wait
-- If another process holds the lock too long, these requests are dropped. The connection does not hang.
set local lock_timeout = 2000;

-- name: lock_writers
-- One process at a time writes and trims, so two processes never wait for each other's rows.
select pg_advisory_xact_lock(4040044);

-- name: insert_refused
-- Inserts the requests of known merchants in the order they arrived. Unknown keys belong to nobody.
insert into refused_request (merchant_id, at_ms, request_id, path, code, msg, source, content_type, fields, left_out, is_signed)
select m.merchant_id, u.at_ms, u.request_id, u.path, u.code, u.msg, u.source, u.content_type, u.fields::json, string_to_array(u.left_out, ' '),
       u.is_signed
  from unnest(%(app_keys)s::text[], %(at_ms)s::bigint[], %(request_ids)s::text[], %(paths)s::text[], %(codes)s::int[], %(msgs)s::text[],
              %(sources)s::text[], %(content_types)s::text[], %(fields)s::text[], %(left_out)s::text[],
              %(signed)s::boolean[]) with ordinality
       u (app_key, at_ms, request_id, path, code, msg, source, content_type, fields, left_out, is_signed, place)
  join (select m.merchant_id, m.app_key from merchant m where m.app_key = any(%(app_keys)s::text[])
         union all
        select k.merchant_id, k.app_key from merchant_key k where k.app_key = any(%(app_keys)s::text[])) m on m.app_key = u.app_key
 order by u.place;

-- name: trim_refused
-- Deletes all but the last signed and the last unsigned requests of each of the merchants with these keys.
delete from refused_request r
 using (select m.merchant_id from merchant m where m.app_key = any(%(app_keys)s::text[])
         union
        select n.merchant_id from merchant_key n where n.app_key = any(%(app_keys)s::text[])) m
 cross join (values (true), (false)) l (is_signed)
 cross join lateral (
       select min(newest.refused_no) as oldest
         from (select refused_no from refused_request where merchant_id = m.merchant_id and is_signed = l.is_signed
                order by refused_no desc limit %(kept)s::int) newest) k
 where r.merchant_id = m.merchant_id and r.is_signed = l.is_signed and r.refused_no < k.oldest;

-- name: list_refused
-- A merchant's refused requests, newest first: all, or the signed or the unsigned ones.
select refused_no, at_ms, request_id, path, code, msg, source, content_type, fields, left_out
  from refused_request where merchant_id = %(merchant_id)s::bigint and refused_no < %(before_no)s::bigint
   and (%(is_signed)s::boolean is null or is_signed = %(is_signed)s::boolean)
 order by refused_no desc limit %(page)s;
