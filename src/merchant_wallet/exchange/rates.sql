-- The operator's rates. `rates.py` runs these. A batch of the book reads the same rows with its own query.

-- name: lock_rates
-- Allows one change at a time, so that each is checked against the current rates. Batches can still read.
lock table rate in share row exclusive mode;

-- name: read_rates
-- Both directions of the given scopes, or of all scopes: one row per direction.
select r.merchant_id, d.direction, d.rate_e8, d.paused, d.set_ms, d.max_age_ms
  from rate r
 cross join lateral (values ('USDT:KFB', r.usdt_kfb_e8, r.usdt_kfb_paused, r.usdt_kfb_set_ms, r.usdt_kfb_max_age_ms),
                            ('KFB:USDT', r.kfb_usdt_e8, r.kfb_usdt_paused, r.kfb_usdt_set_ms, r.kfb_usdt_max_age_ms))
       d (direction, rate_e8, paused, set_ms, max_age_ms)
 where %(scopes)s::bigint[] is null or r.merchant_id = any(%(scopes)s::bigint[])
 order by r.merchant_id, d.direction;

-- name: find_merchant
-- Checks that the merchant exists.
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
-- What a direction is from this moment on. Rows are only added.
insert into rate_history (merchant_id, direction, rate_e8, paused, max_age_ms, set_ms)
values (%(merchant_id)s::bigint, %(direction)s::text, %(rate_e8)s::bigint, %(paused)s::boolean,
        %(max_age_ms)s::bigint, %(at_ms)s::bigint);

-- name: list_history
-- Changes with a smaller number, newest first, of one scope or of all.
select rate_history_id, merchant_id, direction, rate_e8, paused, max_age_ms, set_ms
  from rate_history
 where rate_history_id < %(before_no)s::bigint
   and (%(merchant_id)s::bigint is null or merchant_id = %(merchant_id)s::bigint)
 order by rate_history_id desc limit %(limit)s::int;

-- name: read_anchor
-- The rate in force for a scope at a moment: its own rate, or else the platform's. If neither had a rate: the rate that was
-- removed last, or else the first rate after that moment.
with last_change as (
    select scope.merchant_id, last.rate_history_id, last.rate_e8
      from (select distinct unnest(array[%(merchant_id)s::bigint, %(platform)s::bigint])) scope (merchant_id)
     cross join lateral (
           select h.rate_history_id, h.rate_e8 from rate_history h
            where h.merchant_id = scope.merchant_id and h.direction = %(direction)s::text and h.set_ms <= %(since_ms)s::bigint
            order by h.rate_history_id desc limit 1) last),
removed as (
    select last.rate_e8,
           (select min(next.rate_history_id) from rate_history next
             where next.merchant_id = last_change.merchant_id and next.direction = %(direction)s::text
               and next.rate_history_id > last.rate_history_id) as removed_no
      from last_change
     cross join lateral (
           select h.rate_history_id, h.rate_e8 from rate_history h
            where h.merchant_id = last_change.merchant_id and h.direction = %(direction)s::text and h.rate_e8 is not null
              and h.rate_history_id < last_change.rate_history_id
            order by h.rate_history_id desc limit 1) last
     where last_change.rate_e8 is null)
select rate_e8
  from (select rate_e8, case when merchant_id = %(platform)s::bigint then 2 else 1 end as place, 0 as newest
          from last_change where rate_e8 is not null
        union all
        select rate_e8, 3, removed_no from removed
        union all
        (select rate_e8, 4, 0 from rate_history
          where merchant_id in (%(merchant_id)s::bigint, %(platform)s::bigint) and direction = %(direction)s::text
            and rate_e8 is not null and set_ms > %(since_ms)s::bigint
          order by rate_history_id limit 1)) known
 order by place, newest desc limit 1;
