-- The queue of callbacks, its claims, the result of each attempt, and what an operator sees and changes. The queue is
-- read without a lock. A claim is an attempt number that only grows.

-- name: list_waiting
-- The next merchants with waiting callbacks, due now or later. It jumps from merchant to merchant along the index, so a
-- merchant with a million callbacks costs no more than one with a single callback.
with recursive waiting as (
    (select c.merchant_id from callback c where c.state = 'due' and c.merchant_id > %(after)s::bigint
      order by c.merchant_id limit 1)
    union all
    select (select c.merchant_id from callback c where c.state = 'due' and c.merchant_id > w.merchant_id
             order by c.merchant_id limit 1)
      from waiting w where w.merchant_id is not null)
select merchant_id, exists (select from callback_pause p where p.merchant_id = w.merchant_id)
  from waiting w where w.merchant_id is not null and w.{open_books}
 limit %(limit)s::int;

-- name: peek_due
-- The first few callbacks of each of these merchants that may be sent now, and their URLs. Every merchant's first comes
-- before any merchant's second. A callback waits while an earlier one of its order is due or paused.
select d.merchant_id, d.order_id, d.status, coalesce(w.notify_url, m.deposit_notify_url)
  from unnest(%(merchant_ids)s::bigint[]) k (merchant_id)
 cross join lateral (
       select c.merchant_id, c.order_id, c.status, c.event_type, c.withdrawal_id, c.next_ms, c.created_ms from callback c
        where c.merchant_id = k.merchant_id and c.state = 'due' and c.next_ms <= %(now_ms)s::bigint
          and not exists (select from callback b
                           where b.merchant_id = c.merchant_id and b.order_id = c.order_id and b.status < c.status
                             and b.state in ('due', 'paused'))
        order by c.next_ms, c.created_ms limit %(each)s::int) d
  join merchant m on m.merchant_id = d.merchant_id
  left join withdrawal w on w.merchant_id = d.merchant_id and w.order_id = d.withdrawal_id
 order by row_number() over (partition by d.merchant_id order by d.next_ms, d.created_ms), d.next_ms, d.created_ms
 limit %(limit)s::int;

-- name: claim
-- Claims callbacks that are still due and that no other sender is claiming. Rows that another sender has locked are skipped.
update callback c
   set attempt_no = c.attempt_no + 1, next_ms = %(until_ms)s::bigint, claimed_by = %(claimed_by)s::text
  from (select c.merchant_id, c.order_id, c.status, b.settings_version
          from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[], %(statuses)s::smallint[])
               k (merchant_id, order_id, status)
          join callback c on c.merchant_id = k.merchant_id and c.order_id = k.order_id and c.status = k.status
          join book b on b.merchant_id = k.merchant_id and b.is_open
         where c.state = 'due' and c.next_ms <= %(now_ms)s::bigint
           and not exists (select from callback b
                            where b.merchant_id = c.merchant_id and b.order_id = c.order_id and b.status < c.status
                              and b.state in ('due', 'paused'))
           for update of c skip locked) mine
 where c.merchant_id = mine.merchant_id and c.order_id = mine.order_id and c.status = mine.status
returning c.merchant_id, c.order_id, c.status, c.event_type, c.event_id, c.created_ms, c.attempt_no, c.retry_no,
          mine.settings_version;

-- name: insert_attempts
-- Records the attempts of the callbacks that the same transaction has claimed. They alone have this claim and no row for it.
insert into callback_attempt (merchant_id, order_id, status, attempt_no, at_ms)
select c.merchant_id, c.order_id, c.status, c.attempt_no, %(now_ms)s::bigint
  from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[], %(statuses)s::smallint[]) k (merchant_id, order_id, status)
  join callback c on c.merchant_id = k.merchant_id and c.order_id = k.order_id and c.status = k.status
 where c.claimed_by = %(claimed_by)s::text and c.next_ms = %(until_ms)s::bigint
   and not exists (select from callback_attempt a
                    where a.merchant_id = c.merchant_id and a.order_id = c.order_id and a.status = c.status
                      and a.attempt_no = c.attempt_no);

-- name: read_withdrawals
-- The events of orders. Nothing in them changes after the status was reached.
select k.merchant_id, k.order_id, k.status, k.created_ms, w.mc_order_id, w.amount, w.fee, w.rate_e8, w.chain, w.address,
       w.created_ms, w.tx_hash
  from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[], %(statuses)s::smallint[], %(event_ms)s::bigint[])
       k (merchant_id, order_id, status, created_ms)
  join withdrawal w on w.merchant_id = k.merchant_id and w.order_id = k.order_id;

-- name: read_deposits
-- The events of deposits. A credited deposit never changes.
select k.merchant_id, k.order_id, 0, k.created_ms, d.user_id, s.ext_user_id, d.chain, d.address, d.tx_hash, d.log_index, d.amount,
       c.currency, c.amount, c.rate_e8, d.seen_ms
  from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[], %(event_ms)s::bigint[]) k (merchant_id, order_id, created_ms)
  join deposit_credit c on c.merchant_id = k.merchant_id and c.entry_id = k.order_id
  join deposit d on d.merchant_id = c.merchant_id and d.chain = c.chain and d.tx_hash = c.tx_hash and d.log_index = c.log_index
  left join sub_user s on s.merchant_id = d.merchant_id and s.user_id = d.user_id;

-- name: record_success
-- A successful attempt. It counts whoever has claimed the callback by now. A book that is moved meanwhile sends it again.
update callback
   set state = 'delivered', delivered_ms = coalesce(delivered_ms, %(now_ms)s::bigint), claimed_by = null, retry_no = 0
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and status = %(status)s::smallint
   and {book_is_open};

-- name: note_order
-- The first success is the order's notifyTime.
update withdrawal w set notified_ms = %(now_ms)s::bigint
  from callback c
 where c.merchant_id = %(merchant_id)s::bigint and c.order_id = %(order_id)s::bigint and c.status = %(status)s::smallint
   and w.merchant_id = c.merchant_id and w.order_id = c.withdrawal_id and w.notified_ms is null
   and {book_is_open};

-- name: record_failure
-- When a callback is sent next after a failed attempt, unless a later attempt or an operator has moved it.
update callback
   set state = case when %(next_ms)s::bigint is null then 'dead_letter' else 'due' end,
       next_ms = coalesce(%(next_ms)s::bigint, next_ms),
       retry_no = case when %(next_ms)s::bigint is null then retry_no else retry_no + 1 end, claimed_by = null
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and status = %(status)s::smallint
   and attempt_no = %(attempt_no)s::int and state = 'due' and {book_is_open};

-- name: record_answer
-- What an attempt was answered. A success keeps the error that was recorded before. Both record it last, so all take the
-- callback's lock first.
update callback_attempt
   set address = %(address)s::text, http_status = %(http_status)s::smallint, answer = %(answer)s::bytea,
       error = coalesce(%(error)s::text, error), latency_ms = %(latency_ms)s::int
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and status = %(status)s::smallint
   and attempt_no = %(attempt_no)s::int and {book_is_open};

-- name: send_again
-- An operator has it sent now, and the schedule begins anew. A running attempt is not doubled.
update callback set state = 'due', retry_no = 0, next_ms = case when claimed_by is null then 0 else next_ms end
 where merchant_id = %(merchant_id)s::bigint and event_id = %(event_id)s::text and {book_is_open};

-- name: send_dead_letters_again
-- The same for all dead letters of a merchant.
update callback set state = 'due', retry_no = 0, next_ms = 0, claimed_by = null
 where merchant_id = %(merchant_id)s::bigint and state = 'dead_letter' and {book_is_open};

-- name: pause
-- An operator pauses it. A delivered callback can't be paused.
update callback set state = 'paused'
 where merchant_id = %(merchant_id)s::bigint and event_id = %(event_id)s::text and state = 'due' and {book_is_open};

-- name: resume
-- It continues at once with the repeat at which it was paused.
update callback set state = 'due', next_ms = case when claimed_by is null then 0 else next_ms end
 where merchant_id = %(merchant_id)s::bigint and event_id = %(event_id)s::text and state = 'paused' and {book_is_open};

-- name: pause_merchant
-- Nothing more is sent to a merchant. New callbacks wait.
insert into callback_pause (merchant_id, since_ms, paused_by)
select %(merchant_id)s::bigint, %(now_ms)s::bigint, %(paused_by)s::text where {book_is_open}
on conflict (merchant_id) do nothing;

-- name: resume_merchant
-- Everything that waited is sent.
delete from callback_pause where merchant_id = %(merchant_id)s::bigint and {book_is_open};

-- name: list_pauses
-- The paused merchants.
select merchant_id, since_ms, paused_by from callback_pause
 where {open_books}
 order by since_ms, merchant_id;
