-- Signed requests and their numbers. `recorder.py` writes them, `listing.py` reads them.

-- fragment: keys
-- The merchants and the numbers of these appKeys.
(select m.merchant_id, 1 as key_no, m.app_key from merchant m where m.app_key = any(%(app_keys)s::text[])
         union all
        select k.merchant_id, k.key_no, k.app_key from merchant_key k where k.app_key = any(%(app_keys)s::text[]))

-- name: skip_commit_wait
-- A crash may lose the last second. This must not delay commits that move money.
set local synchronous_commit = off;

-- name: limit_lock_wait
-- If another process holds a row too long, these requests are dropped. The connection does not hang.
set local lock_timeout = 2000;

-- name: insert_requests
-- Inserts requests in the order in which they were answered.
insert into request_log (merchant_id, key_no, at_ms, request_id, operation, code, source, took_ms, fields, left_out)
select m.merchant_id, m.key_no, u.at_ms, u.request_id, u.operation, u.code, u.source, u.took_ms, u.fields::json,
       string_to_array(u.left_out, ' ')
  from unnest(%(app_keys)s::text[], %(at_ms)s::bigint[], %(request_ids)s::text[], %(operations)s::text[], %(codes)s::int[],
              %(sources)s::text[], %(took_ms)s::int[], %(fields)s::text[], %(left_out)s::text[]) with ordinality
       u (app_key, at_ms, request_id, operation, code, source, took_ms, fields, left_out, place)
  join {keys} m on m.app_key = u.app_key
 order by u.place;

-- name: trim_requests
-- Deletes all but the last requests of each of the merchants with these keys.
delete from request_log r
 using (select distinct k.merchant_id from {keys} k) m
 cross join lateral (
       select min(newest.log_no) as oldest
         from (select log_no from request_log where merchant_id = m.merchant_id order by log_no desc limit %(kept)s::int) newest) k
 where r.merchant_id = m.merchant_id and r.log_no < k.oldest;

-- name: add_usage
-- Adds to the numbers of an hour. Rows are in one order, so two processes never wait for each other in a circle.
insert into request_usage as u (merchant_id, hour_ms, key_no, operation, code, requests)
select m.merchant_id, %(hour_ms)s::bigint, m.key_no, a.operation, a.code, a.requests
  from unnest(%(app_keys)s::text[], %(operations)s::text[], %(codes)s::int[], %(requests)s::bigint[]) a (app_key, operation, code, requests)
  join {keys} m on m.app_key = a.app_key
 order by m.merchant_id, m.key_no, a.operation, a.code
on conflict (merchant_id, hour_ms, key_no, operation, code) do update set requests = u.requests + excluded.requests;

-- name: add_minute
-- Adds to the numbers of a minute.
insert into request_minute as u (merchant_id, minute_ms, requests)
select m.merchant_id, %(minute_ms)s::bigint, sum(a.requests)
  from unnest(%(app_keys)s::text[], %(requests)s::bigint[]) a (app_key, requests)
  join {keys} m on m.app_key = a.app_key
 group by m.merchant_id order by m.merchant_id
on conflict (merchant_id, minute_ms) do update set requests = u.requests + excluded.requests;

-- name: note_uses
-- Notes in which minute these keys were used last.
insert into merchant_key_use as u (merchant_id, key_no, used_ms)
select f.merchant_id, f.key_no, %(used_ms)s::bigint from {keys} f order by f.merchant_id, f.key_no
on conflict (merchant_id, key_no) do update set used_ms = excluded.used_ms where u.used_ms < excluded.used_ms;

-- name: list_requests
-- A merchant's requests, newest first, filtered by request id, operation and code. At most as many rows as are kept are read.
select log_no, key_no, at_ms, request_id, operation, code, source, took_ms, fields, left_out
  from request_log
 where merchant_id = %(merchant_id)s::bigint and log_no < %(before_no)s::bigint and at_ms > %(since_ms)s::bigint
   and (%(request_id)s::text is null or request_id = %(request_id)s::text)
   and (%(operation)s::text is null or operation = %(operation)s::text)
   and (%(code)s::int is null or code = %(code)s::int)
 order by log_no desc limit %(page)s::int;

-- name: list_usage
-- A merchant's numbers since a time, the newest hour first.
select hour_ms, operation, code, sum(requests)::bigint as requests
  from request_usage where merchant_id = %(merchant_id)s::bigint and hour_ms >= %(since_ms)s::bigint
 group by hour_ms, operation, code order by hour_ms desc, requests desc, operation, code;

-- name: add_up_by_key
-- A merchant's numbers since a time, of each key.
select key_no, sum(requests)::bigint as requests, coalesce(sum(requests) filter (where code <> %(success)s::int), 0)::bigint as refused
  from request_usage where merchant_id = %(merchant_id)s::bigint and hour_ms >= %(since_ms)s::bigint
 group by key_no order by key_no;

-- name: find_busiest_minute
-- The minute since a time in which a merchant made most requests.
select minute_ms, requests from request_minute
 where merchant_id = %(merchant_id)s::bigint and minute_ms >= %(since_ms)s::bigint
 order by requests desc, minute_ms desc limit 1;

-- name: delete_old_requests
-- Deletes a part of the requests that nobody lists any more.
delete from request_log r using (select merchant_id, log_no from request_log where at_ms < %(before_ms)s::bigint
                                  order by at_ms limit %(limit)s::int) o
 where r.merchant_id = o.merchant_id and r.log_no = o.log_no;

-- name: delete_old_usage
-- Deletes old numbers of hours.
delete from request_usage where hour_ms < %(before_ms)s::bigint;

-- name: delete_old_minutes
-- Deletes old numbers of minutes.
delete from request_minute where minute_ms < %(before_ms)s::bigint;
