-- What the sandbox's processes tell each other, in home. Every query names one merchant, but for the listeners' look.

-- name: count_up
-- Counts a use of a test value or an action. A new day begins at one. The row's lock puts a merchant's uses in order.
insert into sandbox_count (merchant_id, name, day, times) values (%(merchant_id)s::bigint, %(name)s::text, %(day)s::int, 1)
on conflict (merchant_id, name) do update
   set times = case when sandbox_count.day = excluded.day then sandbox_count.times + 1 else 1 end, day = excluded.day
returning times;

-- name: drop_old_counts
-- Uses of earlier days. Day 0 is for what has no day.
delete from sandbox_count where merchant_id = %(merchant_id)s::bigint and day > 0 and day < %(day)s::int - 1;

-- name: find_mark
-- Whether one of these marks is there.
select 1 from sandbox_count where merchant_id = %(merchant_id)s::bigint and name = any(%(names)s::text[]) limit 1;

-- name: take_mark
-- Takes a mark away, if it is there.
delete from sandbox_count where merchant_id = %(merchant_id)s::bigint and name = %(name)s::text returning times;

-- name: record_callback
-- An attempt at a callback, as it is sent. The counter's row is locked until the commit, so numbers appear in order.
with next as (
    insert into sandbox_count (merchant_id, name, day, times) values (%(merchant_id)s::bigint, %(name)s::text, 0, 1)
    on conflict (merchant_id, name) do update set times = sandbox_count.times + 1
    returning times)
insert into sandbox_callback (merchant_id, attempt_no, event_id, url, headers, body, at_ms)
select %(merchant_id)s::bigint, next.times, %(event_id)s::text, %(url)s::text, %(headers)s::text, %(body)s::text, %(at_ms)s::bigint
  from next
returning attempt_no;

-- name: drop_old_callbacks
-- Keeps the latest attempts of a merchant.
delete from sandbox_callback where merchant_id = %(merchant_id)s::bigint and attempt_no <= %(upto)s::bigint;

-- name: newest_attempts
-- The newest attempt of each of these merchants.
select u.merchant_id, (select max(c.attempt_no) from sandbox_callback c where c.merchant_id = u.merchant_id)
  from unnest(%(merchant_ids)s::bigint[]) u (merchant_id);

-- name: page_attempts
-- The attempts after one, in order.
select attempt_no, event_id, url, headers, body from sandbox_callback
 where merchant_id = %(merchant_id)s::bigint and attempt_no > %(after)s::bigint and attempt_no <= %(upto)s::bigint
 order by attempt_no limit %(limit)s::int;

-- name: find_event
-- The latest attempt at an event.
select max(attempt_no) from sandbox_callback where merchant_id = %(merchant_id)s::bigint and event_id = %(event_id)s::text;

-- name: list_admitted
-- Which of these keys may still listen: their merchant is active, they are not revoked, and no operations limit them. The first key
-- has a row of limits alone.
select m.app_key from merchant m
  left join merchant_key k on k.merchant_id = m.merchant_id and k.key_no = 1
 where m.app_key = any(%(app_keys)s::text[]) and m.status = 'active' and coalesce(cardinality(k.operations), 0) = 0
 union all
select k.app_key from merchant_key k
  join merchant m on m.merchant_id = k.merchant_id
 where k.app_key = any(%(app_keys)s::text[]) and k.revoked_ms is null and m.status = 'active' and cardinality(k.operations) = 0;

-- name: end_transfer
-- Lets an order's transfer become final now, in this way, unless it is final already.
-- Another process has accepted it, whose clock may be ahead.
update sandbox_transfer set final_ms = greatest(%(now_ms)s::bigint, accepted_ms), verdict = %(verdict)s::text
 where final_ms > %(now_ms)s::bigint
   and tx_hash in (select s.tx_hash from payout_signed s
                    where s.merchant_id = %(merchant_id)s::bigint and s.order_id = %(order_id)s::bigint)
returning tx_hash;

-- name: find_frozen
-- Why an order is frozen. No row: it is not.
select frozen_cause from payout
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and frozen_ms is not null;

-- name: hold_refund
-- Whether the refund of an order waits for a test.
insert into sandbox_refund (merchant_id, order_id, is_held)
values (%(merchant_id)s::bigint, %(order_id)s::bigint, %(is_held)s::boolean)
on conflict (merchant_id, order_id) do update set is_held = excluded.is_held;

-- name: find_refund
-- What a test said about the refund of an order.
select is_held from sandbox_refund where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint;

-- name: find_owner
-- The merchant that an address was issued to.
select merchant_id from issued_address where address = %(address)s::bytea;

-- name: read_own_address
-- A merchant's own deposit address on a chain. This is the cell's table.
select address from merchant_address where merchant_id = %(merchant_id)s::bigint and chain = %(chain)s::text;

-- name: lock_deposits
-- One change of the chains' blocks at a time.
lock table sandbox_unconfirmed in share row exclusive mode;

-- name: drop_old_unconfirmed
-- Deposits that nobody has confirmed for long. Their blocks are replaced by those above them.
delete from sandbox_unconfirmed where at_ms < %(before_ms)s::bigint;

-- name: count_unconfirmed
-- The deposits that wait on a chain: those of a merchant, and all.
select count(*) filter (where merchant_id = %(merchant_id)s::bigint), count(*), coalesce(max(deposit_no), 0)
  from sandbox_unconfirmed where chain = %(chain)s::text;

-- name: list_waiting
-- The deposits of a merchant that wait on any chain, oldest first. There are few.
select chain, tx_hash, amount_units, at_ms, is_gone from sandbox_unconfirmed
 where merchant_id = %(merchant_id)s::bigint order by at_ms, chain, deposit_no;

-- name: insert_unconfirmed
-- A deposit in a block of its own above all others.
insert into sandbox_unconfirmed (chain, deposit_no, merchant_id, tx_hash, sender, recipient, amount_units, at_ms)
values (%(chain)s::text, %(deposit_no)s::bigint, %(merchant_id)s::bigint, %(tx_hash)s::text, %(sender)s::bytea,
        %(recipient)s::bytea, %(amount_units)s::bigint, %(at_ms)s::bigint);

-- name: find_unconfirmed
-- A merchant's deposit that waits.
select chain, sender, recipient, amount_units from sandbox_unconfirmed
 where merchant_id = %(merchant_id)s::bigint and tx_hash = %(tx_hash)s::text;

-- name: delete_unconfirmed
-- It is confirmed, and gets a block below.
delete from sandbox_unconfirmed where tx_hash = %(tx_hash)s::text and merchant_id = %(merchant_id)s::bigint;

-- name: drop_block
-- The block of a deposit leaves the chain.
update sandbox_unconfirmed set is_gone = true where tx_hash = %(tx_hash)s::text and merchant_id = %(merchant_id)s::bigint;

-- name: find_confirmed
-- A deposit of this merchant that a test has confirmed.
select d.chain, d.recipient, d.amount_units, d.at_ms from sandbox_deposit d
  join issued_address a on a.address = d.recipient and a.merchant_id = %(merchant_id)s::bigint
 where d.tx_hash = %(tx_hash)s::text;

-- name: find_order_name
-- The merchant's own id of an order. This is the cell's table.
select mc_order_id from withdrawal where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint;
