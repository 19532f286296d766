-- The metrics of screening, from home.

-- name: count_waiting
-- What screening keeps back, by what it is about. An order without an answer says so itself; an open screening of another order
-- waits for payout hours, or was just begun.
select w.subject, w.state, count(*), min(w.changed_ms)
  from (select case when s.order_id is null then 'deposit' else 'order' end as subject,
               case when s.state = 'held' then 'held'
                    when s.order_id is null or p.obstacle_kind = 'screening_away' then 'unanswered' end as state,
               s.changed_ms
          from (select merchant_id, order_id, state, changed_ms from screening
                 where state in ('open', 'held') order by screening_no limit %(most)s::int) s
          left join payout p on p.merchant_id = s.merchant_id and p.order_id = s.order_id) w
 where w.state is not null
 group by w.subject, w.state;

-- name: count_questions
-- How many questions of the last hour have an answer, and how many were asked in vain.
select count(*) filter (where answered_ms is not null), count(*) filter (where answered_ms is null and error is not null)
  from screening_question where asked_ms > %(since_ms)s::bigint;
