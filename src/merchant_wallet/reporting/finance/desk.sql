-- The platform's rates in force at a moment, to value the desk.

-- name: find_rates
-- The last change of each direction up to a moment, unless it removed the rate. Changes are few, and read from the newest down.
select d.direction, h.rate_e8, h.set_ms
  from unnest(%(directions)s::text[]) d (direction)
 cross join lateral (
       select rate_e8, set_ms from rate_history
        where merchant_id = %(platform)s::bigint and direction = d.direction and set_ms < %(before_ms)s::bigint
        order by rate_history_id desc limit 1) h
 where h.rate_e8 is not null;
