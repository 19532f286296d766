-- The hosts that a merchant's callbacks go to. `endpoints.py` runs this.

-- name: list_last_attempts
-- The attempts of a merchant's newest callbacks, each with its URL. A callback that was not sent yet has none.
with newest as materialized (
    select c.* from unnest(array['due', 'delivered', 'dead_letter', 'paused']) k (state)
     cross join unnest(array['withdrawal', 'deposit']) v (event_type)
     cross join lateral (
           select * from callback c
            where c.merchant_id = %(merchant_id)s::bigint and c.state = k.state and c.event_type = v.event_type
            order by c.created_ms desc, c.order_id desc, c.status desc limit %(most)s::int) c
     order by c.created_ms desc, c.order_id desc, c.status desc limit %(most)s::int)
select coalesce((select w.notify_url from withdrawal w
                  where w.merchant_id = c.merchant_id and w.order_id = c.withdrawal_id), m.deposit_notify_url) as url, c.event_id, c.state, t.attempt_no, t.at_ms, t.address, t.http_status,
       t.error, t.answer, t.latency_ms
  from newest c
  join merchant m on m.merchant_id = c.merchant_id
 cross join lateral (
       select * from callback_attempt t
        where t.merchant_id = c.merchant_id and t.order_id = c.order_id and t.status = c.status
        order by t.attempt_no desc limit %(attempts)s::int) t
 order by t.at_ms desc, c.event_id, t.attempt_no desc;
