-- Messages to operators, and which items they were about. `outbox.py` runs these.

-- name: lock_planning
-- Only one worker decides at a time who is told of what.
select pg_try_advisory_xact_lock(hashtext('notification'), hashtext('planning'));

-- name: list_told
-- What the people of one merchant, or with null of the platform, were told of.
select t.operator_id, t.channel, t.kind, t.item_key, t.told_ms, t.gone_ms
  from notification_told t join operator o on o.operator_id = t.operator_id
 where o.merchant_id is not distinct from %(merchant_id)s::bigint;

-- name: list_last
-- When each operator was last sent a message about items.
select c.operator_id, c.channel, n.created_ms
  from unnest(%(operator_ids)s::bigint[], %(channels)s::text[]) c (operator_id, channel)
 cross join lateral (
       select created_ms from notification
        where operator_id = c.operator_id and channel = c.channel and not is_test order by notification_no desc limit 1) n;

-- name: insert_notification
-- A message that is to be sent.
insert into notification (operator_id, channel, target, is_test, items, created_ms, next_ms)
values (%(operator_id)s::bigint, %(channel)s::text, %(target)s::text, %(is_test)s::boolean, %(items)s::jsonb, %(at_ms)s::bigint,
        %(at_ms)s::bigint)
returning notification_no;

-- name: insert_told
-- The items of a message.
insert into notification_told (operator_id, channel, kind, item_key, notification_no, told_ms)
select %(operator_id)s::bigint, %(channel)s::text, i.kind, i.item_key, %(notification_no)s::bigint, %(at_ms)s::bigint
  from unnest(%(kinds)s::text[], %(keys)s::text[]) i (kind, item_key)
on conflict do nothing;

-- name: mark_gone
-- These items wait no more.
update notification_told t set gone_ms = %(at_ms)s::bigint
  from unnest(%(operator_ids)s::bigint[], %(channels)s::text[], %(kinds)s::text[], %(keys)s::text[]) g (operator_id, channel, kind, item_key)
 where t.operator_id = g.operator_id and t.channel = g.channel and t.kind = g.kind and t.item_key = g.item_key and t.gone_ms is null;

-- name: mark_back
-- These items wait again, or still.
update notification_told t set gone_ms = null
  from unnest(%(operator_ids)s::bigint[], %(channels)s::text[], %(kinds)s::text[], %(keys)s::text[]) g (operator_id, channel, kind, item_key)
 where t.operator_id = g.operator_id and t.channel = g.channel and t.kind = g.kind and t.item_key = g.item_key
   and t.gone_ms is not null;

-- name: forget
-- These items have been gone for some time. If they come back, people are told again.
delete from notification_told t
 using unnest(%(operator_ids)s::bigint[], %(channels)s::text[], %(kinds)s::text[], %(keys)s::text[]) g (operator_id, channel, kind, item_key)
 where t.operator_id = g.operator_id and t.channel = g.channel and t.kind = g.kind and t.item_key = g.item_key
   and t.gone_ms is not null;

-- name: delete_old_items
-- What has been gone for very long. Of people who are not asked any more, nobody looks whether it comes back.
delete from notification_told where ctid = any (array(
    select ctid from notification_told where gone_ms < %(before_ms)s::bigint limit 1000));

-- name: claim
-- Takes messages that are due. One whose last attempt has no result may have arrived.
update notification n
   set attempt_no = attempt_no + 1, is_doubtful = is_doubtful or claimed_until_ms is not null,
       claimed_until_ms = %(until_ms)s::bigint
 where notification_no = any (array(
       select notification_no from notification
        where state = 'waiting' and next_ms <= %(at_ms)s::bigint and coalesce(claimed_until_ms, 0) < %(at_ms)s::bigint
          and channel = any(%(channels)s::text[])
        order by next_ms limit %(limit)s::int for update skip locked))
returning notification_no, operator_id, channel, target, is_test, items, created_ms, attempt_no, is_doubtful;

-- name: read_reader
-- The language, contact and merchant of the operator of a message.
select o.name, o.language, o.status, n.email, n.email_asked_ms, n.email_confirmed_ms, n.webhook_url, n.webhook_sealed,
       n.time_zone
  from operator o join notification_contact n on n.operator_id = o.operator_id
 where o.operator_id = %(operator_id)s::bigint;

-- name: is_waiting
-- Whether anything of a message still waits.
select exists (select from notification_told where notification_no = %(notification_no)s::bigint and gone_ms is null);

-- name: record_result
-- The result of an attempt, of whoever has the claim.
update notification
   set state = %(state)s::text, claimed_until_ms = null, next_ms = %(next_ms)s::bigint, ended_ms = %(ended_ms)s::bigint,
       answer = %(answer)s::text
 where notification_no = %(notification_no)s::bigint and attempt_no = %(attempt_no)s::int and state = 'waiting';

-- name: list_recent
-- An operator's last messages.
select notification_no, channel, target, is_test, items, created_ms, state, attempt_no, next_ms, claimed_until_ms, is_doubtful,
       ended_ms, answer
  from notification where operator_id = %(operator_id)s::bigint order by notification_no desc limit %(limit)s::int;

-- name: read_items
-- The items of one of an operator's messages.
select items from notification
 where notification_no = %(notification_no)s::bigint and operator_id = %(operator_id)s::bigint;

-- name: count_tests
-- How many tests an operator has asked for since a time.
select count(*) from (select from notification
                       where operator_id = %(operator_id)s::bigint and is_test and created_ms >= %(since_ms)s::bigint
                       order by notification_no desc limit 100) t;

-- name: read_state
-- For `doctor`: how long messages have waited, by channel, and how many have failed since a time.
select c.channel,
       (select min(n.created_ms) from notification n where n.state = 'waiting' and n.channel = c.channel) as oldest_ms,
       (select count(*) from notification n where n.state = 'failed' and n.channel = c.channel and n.ended_ms >= %(since_ms)s::bigint) as failed,
       (select count(*) from notification_choice h join notification_contact n on n.operator_id = h.operator_id
         where case c.channel when 'email' then h.by_email and n.email_confirmed_ms is not null
                              else h.by_webhook and n.webhook_url is not null end) as wanted
  from unnest(array['email', 'webhook']) c (channel);

-- name: list_messages
-- The last messages to anybody, or only those that failed.
select n.notification_no, o.name, n.channel, n.is_test, n.state, n.attempt_no, n.is_doubtful, n.created_ms, n.ended_ms, n.answer
  from (select * from notification where not %(failed)s::boolean or state = 'failed'
         order by notification_no desc limit %(limit)s::int) n
  join operator o on o.operator_id = n.operator_id
 order by n.notification_no desc;

-- name: delete_old
-- Messages that are too old to be shown, without items that still wait.
delete from notification where notification_no = any (array(
    select n.notification_no from notification n
     where n.created_ms < %(before_ms)s::bigint and n.state <> 'waiting'
       and not exists (select from notification_told t where t.notification_no = n.notification_no)
     order by n.created_ms limit 500));
