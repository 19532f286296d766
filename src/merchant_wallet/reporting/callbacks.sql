-- Lists of callbacks. A query reads the next `stride` rows of an index by state, and applies the other filters to those
-- rows. If fewer rows than a page remain, it also returns the last row it read (`is_edge`), so that the caller can go on.

-- fragment: own_columns
-- The columns of the callback's own row, and the event that it waits for: an earlier one of its order.
c.merchant_id, c.order_id, c.status, c.event_type, c.event_id, c.state, c.attempt_no, c.retry_no, c.next_ms, c.created_ms,
       c.delivered_ms, c.claimed_by,
       (select b.event_id from callback b
         where c.state = 'due' and b.merchant_id = c.merchant_id and b.order_id = c.order_id and b.status < c.status
           and b.state in ('due', 'paused')
         order by b.status limit 1) as waits_for;

-- fragment: columns
-- All columns of a list: `m` is the callback's merchant, `w` its order, `t` its last attempt.
{own_columns}, m.name as merchant_name, coalesce(w.notify_url, m.deposit_notify_url) as url, t.at_ms as tried_ms,
       t.http_status, t.error;

-- fragment: joins
-- The tables of these columns.
join merchant m on m.merchant_id = c.merchant_id
  left join withdrawal w on w.merchant_id = c.merchant_id and w.order_id = c.withdrawal_id
  left join callback_attempt t on t.merchant_id = c.merchant_id and t.order_id = c.order_id and t.status = c.status
        and t.attempt_no = c.attempt_no;

-- fragment: next_callbacks
-- The condition and order for the next callbacks of an index.
(c.created_ms, c.order_id, c.status) < (%(key_0)s::bigint, %(key_1)s::bigint, %(key_2)s::smallint)
            order by c.created_ms desc, c.order_id desc, c.status desc limit %(stride)s::int;

-- fragment: filter_by_answer
-- Keeps the callbacks whose last attempt got the wanted HTTP status.
found as (
    select s.* from strip s
     where (%(http_status)s::int is null or %(http_status)s::int = (
            select t.http_status from callback_attempt t
             where t.merchant_id = s.merchant_id and t.order_id = s.order_id and t.status = s.status
               and t.attempt_no = s.attempt_no))
     order by s.created_ms desc, s.order_id desc, s.status desc limit %(page)s::int),
edge as (
    select s.* from strip s
     where (select count(*) from strip) >= %(stride)s::int and (select count(*) from found) < %(page)s::int
     order by s.created_ms asc, s.order_id asc, s.status asc limit 1)
select {columns}, c.is_edge
  from (select f.*, false as is_edge from found f union all select e.*, true from edge e) c
  {joins}
 order by c.is_edge, c.created_ms desc, c.order_id desc, c.status desc;

-- name: page_by_moment
-- All merchants' callbacks, the newest first.
with strip as materialized (
    select c.* from unnest(%(states)s::text[]) k (state) cross join unnest(%(event_types)s::text[]) v (event_type)
     cross join lateral (
           select * from callback c
            where c.state = k.state and c.event_type = v.event_type and c.{open_books}
              and {next_callbacks}) c
     order by c.created_ms desc, c.order_id desc, c.status desc limit %(stride)s::int),
{filter_by_answer};

-- name: page_of_merchant_by_moment
-- One merchant's callbacks, the newest first.
with strip as materialized (
    select c.* from unnest(%(states)s::text[]) k (state) cross join unnest(%(event_types)s::text[]) v (event_type)
     cross join lateral (
           select * from callback c
            where c.merchant_id = %(merchant_id)s::bigint and c.state = k.state and c.event_type = v.event_type
              and {next_callbacks}) c
     order by c.created_ms desc, c.order_id desc, c.status desc limit %(stride)s::int),
{filter_by_answer};

-- name: find_by_event
-- The callback of one event. The id of the event names its book.
select {columns}
  from callback c
  {joins}
 where c.merchant_id = %(merchant_id)s::bigint and c.event_id = %(event_id)s::text;

-- name: list_of_merchant
-- A merchant's callbacks, those of its newest orders first.
select {own_columns}
  from callback c
 where c.merchant_id = %(merchant_id)s::bigint and c.order_id < %(before)s::bigint
   and (%(state)s::text is null or c.state = %(state)s::text)
 order by c.order_id desc, c.status desc limit %(limit)s::int;

-- name: list_undelivered
-- Undelivered callbacks of all merchants, oldest first. With a state, only those in it.
select {own_columns}
  from (select * from callback where state = 'due' and coalesce(%(state)s::text, 'due') = 'due' and {open_books}
        union all
        select * from callback where state in ('dead_letter', 'paused') and coalesce(%(state)s::text, state) = state
           and {open_books}) c
 order by c.created_ms, c.merchant_id, c.order_id, c.status limit %(limit)s::int;

-- name: list_attempts
-- Every attempt to deliver one callback.
select attempt_no, at_ms, address, http_status, error, answer, latency_ms from callback_attempt
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and status = %(status)s::smallint
 order by attempt_no desc limit %(limit)s::int;

-- name: count_by_state
-- Undelivered callbacks of all merchants by state. Each count stops at a bound.
select k.state, count(c.state) as callbacks, min(c.created_ms) as oldest_ms
  from unnest(array['due', 'dead_letter', 'paused']) k (state) cross join unnest(array['withdrawal', 'deposit']) v (event_type)
  left join lateral (select c.state, c.created_ms from callback c
                      where c.state = k.state and c.event_type = v.event_type and c.{open_books}
                      order by c.created_ms asc limit %(most)s::int) c on true
 group by k.state;

-- name: count_by_state_of_merchant
-- The same for one merchant.
select k.state, count(c.state) as callbacks, min(c.created_ms) as oldest_ms
  from unnest(array['due', 'dead_letter', 'paused']) k (state) cross join unnest(array['withdrawal', 'deposit']) v (event_type)
  left join lateral (select c.state, c.created_ms from callback c
                      where c.merchant_id = %(merchant_id)s::bigint and c.state = k.state and c.event_type = v.event_type
                      order by c.created_ms asc limit %(most)s::int) c on true
 group by k.state;
