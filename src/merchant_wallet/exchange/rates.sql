-- The operator's rates. `rates.py` runs these; the batch reads the same rows by itself.

-- name: lock_rates
-- One change of rates at a time, so that each is judged against what stands; batches go on reading.
lock table rate in share row exclusive mode;

-- name: read_rates
-- Both directions of the scopes named, or of all when none is: one line per direction.
select r.merchant_id, d.direction, d.rate_e8, d.paused, d.set_ms, d.max_age_ms
  from rate r
 cross join lateral (values ('USDT:KFB', r.usdt_kfb_e8, r.usdt_kfb_paused, r.usdt_kfb_set_ms, r.usdt_kfb_max_age_ms),
                            ('KFB:USDT', r.kfb_usdt_e8, r.kfb_usdt_paused, r.kfb_usdt_set_ms, r.kfb_usdt_max_age_ms))
       d (direction, rate_e8, paused, set_ms, max_age_ms)
 where %(scopes)s::bigint[] is null or r.merchant_id = any(%(scopes)s::bigint[])
 order by r.merchant_id, d.direction;

-- name: find_merchant
-- A merchant's own rate needs a merchant.
select merchant_id from merchant where merchant_id = %(merchant_id)s::bigint;

-- name: put_usdt_kfb
-- Writes the direction USDT to KFB of one scope.
insert into rate (merchant_id, usdt_kfb_e8, usdt_kfb_paused, usdt_kfb_set_ms, usdt_kfb_max_age_ms)
values (%(merchant_id)s::bigint, %(rate_e8)s::bigint, %(paused)s::boolean, %(set_ms)s::bigint, %(max_age_ms)s::bigint)
on conflict (merchant_id) do update
   set usdt_kfb_e8 = excluded.usdt_kfb_e8, usdt_kfb_paused = excluded.usdt_kfb_paused,
       usdt_kfb_set_ms = excluded.usdt_kfb_set_ms, usdt_kfb_max_age_ms = excluded.usdt_kfb_max_age_ms;

-- name: put_kfb_usdt
-- Writes the direction KFB to USDT of one scope.
insert into rate (merchant_id, kfb_usdt_e8, kfb_usdt_paused, kfb_usdt_set_ms, kfb_usdt_max_age_ms)
values (%(merchant_id)s::bigint, %(rate_e8)s::bigint, %(paused)s::boolean, %(set_ms)s::bigint, %(max_age_ms)s::bigint)
on conflict (merchant_id) do update
   set kfb_usdt_e8 = excluded.kfb_usdt_e8, kfb_usdt_paused = excluded.kfb_usdt_paused,
       kfb_usdt_set_ms = excluded.kfb_usdt_set_ms, kfb_usdt_max_age_ms = excluded.kfb_usdt_max_age_ms;

-- name: insert_history
-- What a direction was from this moment on; only ever appended.
insert into rate_history (merchant_id, direction, rate_e8, paused, max_age_ms, set_ms)
values (%(merchant_id)s::bigint, %(direction)s::text, %(rate_e8)s::bigint, %(paused)s::boolean,
        %(max_age_ms)s::bigint, %(at_ms)s::bigint);

-- name: list_history
-- What was changed before a change, the newest first, of one scope or of all.
select rate_history_id, merchant_id, direction, rate_e8, paused, max_age_ms, set_ms
  from rate_history
 where rate_history_id < %(before_no)s::bigint
   and (%(merchant_id)s::bigint is null or merchant_id = %(merchant_id)s::bigint)
 order by rate_history_id desc limit %(limit)s::int;

-- name: read_anchor
-- The rate of a scope that stood at a moment, or else the first one after it.
select rate_e8
  from ((select rate_e8, 1 as place from rate_history
          where merchant_id = %(merchant_id)s::bigint and direction = %(direction)s::text and rate_e8 is not null
            and set_ms <= %(since_ms)s::bigint
          order by rate_history_id desc limit 1)
        union all
        (select rate_e8, 2 from rate_history
          where merchant_id = %(merchant_id)s::bigint and direction = %(direction)s::text and rate_e8 is not null
            and set_ms > %(since_ms)s::bigint
          order by rate_history_id limit 1)) standing
 order by place limit 1;
