-- Where operators are told, of what, and in which order. `contacts.py` and `escalation.py` run these.

-- name: read_contact
-- One operator's contact.
select email, email_asked_ms, email_tries, email_confirmed_ms, webhook_url, webhook_sealed, time_zone, quiet_from_min, quiet_to_min
  from notification_contact where operator_id = %(operator_id)s::bigint;

-- name: lock_contact
-- The same, so that nobody else tries the code at the same time.
select email, email_asked_ms, email_tries, email_confirmed_ms, webhook_url, webhook_sealed, time_zone, quiet_from_min, quiet_to_min
  from notification_contact where operator_id = %(operator_id)s::bigint for update;

-- name: write_contact
-- Stores an operator's contact.
insert into notification_contact (operator_id, email, email_asked_ms, email_tries, email_confirmed_ms, webhook_url, webhook_sealed,
                                  time_zone, quiet_from_min, quiet_to_min)
values (%(operator_id)s::bigint, %(email)s::text, %(email_asked_ms)s::bigint, %(email_tries)s::smallint,
        %(email_confirmed_ms)s::bigint, %(webhook_url)s::text, %(webhook_sealed)s::bytea, %(time_zone)s::text,
        %(quiet_from_min)s::smallint, %(quiet_to_min)s::smallint)
on conflict (operator_id) do update
   set email = excluded.email, email_asked_ms = excluded.email_asked_ms, email_tries = excluded.email_tries,
       email_confirmed_ms = excluded.email_confirmed_ms, webhook_url = excluded.webhook_url,
       webhook_sealed = excluded.webhook_sealed, time_zone = excluded.time_zone, quiet_from_min = excluded.quiet_from_min,
       quiet_to_min = excluded.quiet_to_min;

-- name: list_choices
-- What an operator wants to be told of.
select kind, by_email, by_webhook, wakes from notification_choice where operator_id = %(operator_id)s::bigint order by kind;

-- name: delete_choices
-- Forgets an operator's choices, before the new ones are stored.
delete from notification_choice where operator_id = %(operator_id)s::bigint;

-- name: insert_choices
-- An operator's new choices.
insert into notification_choice (operator_id, kind, by_email, by_webhook, wakes)
select %(operator_id)s::bigint, c.* from unnest(%(kinds)s::text[], %(by_email)s::boolean[], %(by_webhook)s::boolean[],
                                                %(wakes)s::boolean[]) c;

-- name: list_readers
-- Every active operator who wants to be told of something, with contact, choices and place in the order.
select o.operator_id, o.name, o.role, o.merchant_id, o.status, o.totp_confirmed_ms is not null as enrolled, o.language, o.theme,
       o.created_ms,
       (select coalesce(max(x.eligible_ms), 0) from operator_wait x where x.person = lower(o.name collate "C")) as eligible_ms,
       n.email, n.email_asked_ms, n.email_tries, n.email_confirmed_ms, n.webhook_url, n.webhook_sealed, n.time_zone,
       n.quiet_from_min, n.quiet_to_min, s.step_no,
       (select jsonb_agg(jsonb_build_array(c.kind, c.by_email, c.by_webhook, c.wakes))
          from notification_choice c where c.operator_id = n.operator_id) as choices
  from notification_contact n
  join operator o on o.operator_id = n.operator_id
  left join escalation_step s on s.operator_id = n.operator_id
 where o.status = 'active' and exists (select from notification_choice c where c.operator_id = n.operator_id)
 order by n.operator_id;

-- name: list_steps
-- The people in the order in which they are told.
select s.step_no, o.operator_id, o.name from escalation_step s join operator o on o.operator_id = s.operator_id order by s.step_no;

-- name: list_times
-- After how long the next person is told, by kind.
select kind, after_s from escalation_time order by kind;

-- name: lock_escalation
-- One person changes the order at a time.
lock table escalation_step, escalation_time in share row exclusive mode;

-- name: delete_steps
-- Forgets the order, before the new one is stored.
delete from escalation_step;

-- name: delete_times
-- Forgets the times, before the new ones are stored.
delete from escalation_time;

-- name: insert_steps
-- The new order.
insert into escalation_step (operator_id, step_no)
select u.operator_id, u.step_no from unnest(%(operator_ids)s::bigint[]) with ordinality u (operator_id, step_no);

-- name: insert_times
-- The new times.
insert into escalation_time (kind, after_s) select t.* from unnest(%(kinds)s::text[], %(after_s)s::int[]) t;
