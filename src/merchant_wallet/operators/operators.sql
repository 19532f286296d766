-- Operators, second factors, sessions and failed attempts. The modules of this folder run these.

-- name: insert_operator
-- A new operator without a second factor.
insert into operator (name, role, merchant_id, password_hash, must_change_password, created_ms)
values (%(name)s::text, %(role)s::text, %(merchant_id)s::bigint, %(password_hash)s::text, %(is_given)s::boolean,
        %(created_ms)s::bigint)
returning operator_id;

-- name: read_merchant_name
-- The merchant's name: the passwords of its people must not be made of its words.
select name from merchant where merchant_id = %(merchant_id)s::bigint;

-- name: list_operators
-- The next operators by name.
select operator_id, name, role, merchant_id, status, totp_confirmed_ms is not null as enrolled, language, theme, created_ms,
       (select coalesce(max(x.eligible_ms), 0) from operator_wait x where x.person = lower(name collate "C")) as eligible_ms,
       must_change_password
  from operator
 where lower(name collate "C") > %(after_name)s::text collate "C"
 order by lower(name collate "C")
 limit %(limit)s::int;

-- name: read_by_name
-- One operator by name, in any case.
select operator_id, name, role, merchant_id, status, totp_confirmed_ms is not null as enrolled, language, theme, created_ms,
       (select coalesce(max(x.eligible_ms), 0) from operator_wait x where x.person = lower(name collate "C")) as eligible_ms,
       must_change_password
  from operator
 where lower(name collate "C") = %(name)s::text collate "C";

-- name: read_by_id
-- One operator.
select operator_id, name, role, merchant_id, status, totp_confirmed_ms is not null as enrolled, language, theme, created_ms,
       (select coalesce(max(x.eligible_ms), 0) from operator_wait x where x.person = lower(name collate "C")) as eligible_ms,
       must_change_password
  from operator
 where operator_id = %(operator_id)s::bigint;

-- name: lock_by_id
-- Locks one operator until the transaction ends.
select operator_id, name, role, merchant_id, status, totp_confirmed_ms is not null as enrolled, language, theme, created_ms,
       (select coalesce(max(x.eligible_ms), 0) from operator_wait x where x.person = lower(name collate "C")) as eligible_ms,
       must_change_password
  from operator
 where operator_id = %(operator_id)s::bigint
   for update;

-- name: wait_longer
-- An act under way may wait for its book for 20 seconds, and whoever disables the operator waits for the act.
select set_config('lock_timeout', '25s', true), set_config('statement_timeout', '30s', true);

-- name: await_acts
-- Waits until the operator's acts under way are done, and keeps further ones waiting until the transaction ends. They then see what
-- was changed. The other side is `lock_standing` of the approvals.
select pg_advisory_xact_lock(hashtext('operator'), hashtext(lower(name collate "C")))
  from operator where operator_id = %(operator_id)s::bigint;

-- name: begin_wait
-- From now on the operator's approvals do not count for a time. The first operator of a platform does not wait: there is no
-- other person whose check a second account could evade.
insert into operator_wait (person, from_ms, eligible_ms, cause)
select lower(o.name collate "C"), %(at_ms)s::bigint, %(at_ms)s::bigint + %(wait_ms)s::bigint, %(cause)s::text
  from operator o
 where o.operator_id = %(operator_id)s::bigint and %(wait_ms)s::bigint > 0
   and (%(cause)s::text not in ('created', 'enrolled') or exists (
        select 1 from operator other
         where other.operator_id <> o.operator_id and other.status = 'active' and other.role in ('owner', 'operator')
           and (%(cause)s::text = 'created' or other.totp_confirmed_ms is not null)))
    on conflict do nothing;

-- name: read_eligible_ms
-- The time from which a person's approvals count, under every actor name of that person; 0 if always.
select coalesce(max(eligible_ms), 0) from operator_wait where person = person_of(%(actor)s::text);

-- name: count_deciders
-- How many active operators of these roles, other than two persons, have approvals that count.
select count(*) from operator o
 where o.status = 'active' and o.role = any(%(roles)s::text[]) and o.totp_confirmed_ms is not null
   and lower(o.name collate "C") <> all(%(others)s::text[])
   and not exists (select 1 from operator_wait x
                    where x.person = lower(o.name collate "C") and x.eligible_ms > %(at_ms)s::bigint);

-- name: mark_signed_in
-- Records a sign-in with both factors. Returns the time of the last one before, or of the account's creation.
with was as (select operator_id, coalesce(signed_in_ms, created_ms) as at_ms from operator
              where operator_id = %(operator_id)s::bigint for update)
update operator o set signed_in_ms = greatest(was.at_ms, %(at_ms)s::bigint) from was
 where o.operator_id = was.operator_id
returning was.at_ms;

-- name: find_any
-- Whether there is any operator.
select 1 from operator limit 1;

-- name: lock_first
-- Lets one process at a time check for operators and create the first. Others can still read.
lock table operator in share row exclusive mode;

-- name: lock_owners
-- Locks the active owners, so that nobody else can disable or demote them until the transaction ends.
select operator_id from operator where role = 'owner' and status = 'active' order by operator_id for update;

-- name: read_password
-- The stored password hash of an operator.
select password_hash from operator where operator_id = %(operator_id)s::bigint;

-- name: lock_password
-- The same, locked until the transaction ends, so that nobody replaces it.
select password_hash from operator where operator_id = %(operator_id)s::bigint for update;

-- name: write_password
-- A new password.
update operator set password_hash = %(password_hash)s::text, must_change_password = %(is_given)s::boolean
 where operator_id = %(operator_id)s::bigint;

-- name: replace_password
-- Replaces exactly the password that was checked.
update operator set password_hash = %(password_hash)s::text, must_change_password = false
 where operator_id = %(operator_id)s::bigint and password_hash = %(seen_hash)s::text;

-- name: write_role
-- Another role. A merchant's user has its merchant.
update operator set role = %(role)s::text, merchant_id = %(merchant_id)s::bigint where operator_id = %(operator_id)s::bigint;

-- name: write_status
-- Active or disabled.
update operator set status = %(status)s::text where operator_id = %(operator_id)s::bigint;

-- name: write_preferences
-- The pages' language and theme. Null means the browser's setting.
update operator set language = %(language)s::text, theme = %(theme)s::text where operator_id = %(operator_id)s::bigint;

-- name: delete_totp
-- Removes the second factor. A new one must be enrolled.
update operator set totp_sealed = null, totp_confirmed_ms = null, totp_last_step = null
 where operator_id = %(operator_id)s::bigint;

-- name: propose_totp
-- A second factor to confirm. One that is confirmed already stays.
update operator set totp_sealed = %(sealed)s::bytea
 where operator_id = %(operator_id)s::bigint and totp_confirmed_ms is null
returning operator_id;

-- name: lock_totp
-- Locks the second factor and its last used step, so that codes are judged one by one.
select totp_sealed, totp_confirmed_ms, totp_last_step from operator where operator_id = %(operator_id)s::bigint for update;

-- name: use_step
-- Marks the step as used. The first one confirms the factor. The step never goes back.
update operator
   set totp_last_step = %(step)s::bigint, totp_confirmed_ms = coalesce(totp_confirmed_ms, %(at_ms)s::bigint)
 where operator_id = %(operator_id)s::bigint and coalesce(totp_last_step, -1) < %(step)s::bigint
returning operator_id;

-- name: delete_codes
-- Deletes the recovery codes of the old second factor.
delete from operator_recovery_code where operator_id = %(operator_id)s::bigint;

-- name: forget_addresses
-- Forgets where notifications go: whoever had the password may have set it. Kinds and quiet hours stay.
update notification_contact
   set email = null, email_asked_ms = null, email_tries = 0, email_confirmed_ms = null, webhook_url = null, webhook_sealed = null
 where operator_id = %(operator_id)s::bigint;

-- name: insert_codes
-- The recovery codes of a new second factor.
insert into operator_recovery_code (operator_id, code_hash)
select %(operator_id)s::bigint, unnest(%(hashes)s::bytea[]);

-- name: use_code
-- Uses up a recovery code.
update operator_recovery_code set used_ms = %(at_ms)s::bigint
 where operator_id = %(operator_id)s::bigint and code_hash = %(code_hash)s::bytea and used_ms is null
returning operator_id;

-- name: count_codes
-- How many recovery codes are left.
select count(*) from operator_recovery_code where operator_id = %(operator_id)s::bigint and used_ms is null;

-- name: list_code_hashes
-- Every recovery code of an operator, also those that were used, in the order of their hashes.
select code_hash from operator_recovery_code where operator_id = %(operator_id)s::bigint order by code_hash;

-- name: insert_session
-- A new session, after the password or after both factors.
insert into operator_session (token_hash, operator_id, totp_passed, created_ms, seen_ms, expires_ms, source, user_agent)
values (%(token_hash)s::bytea, %(operator_id)s::bigint, %(totp_passed)s::boolean, %(at_ms)s::bigint, %(at_ms)s::bigint,
        %(expires_ms)s::bigint, %(source)s::text, %(user_agent)s::text);

-- name: read_session
-- A live session by its token, with the current state of its operator.
select s.token_hash, s.created_ms, s.seen_ms, s.expires_ms, s.source, s.user_agent,
       o.operator_id, o.name, o.role, o.merchant_id, o.status, o.totp_confirmed_ms is not null, o.language, o.theme,
       o.created_ms, (select coalesce(max(x.eligible_ms), 0) from operator_wait x where x.person = lower(o.name collate "C")),
       o.must_change_password
  from operator_session s
  join operator o on o.operator_id = s.operator_id
 where s.token_hash = %(token_hash)s::bytea and s.totp_passed = %(totp_passed)s::boolean and s.expires_ms > %(at_ms)s::bigint
   and s.seen_ms > %(idle_since_ms)s::bigint and o.status = 'active';

-- name: find_ended
-- Whose session this was, if it has ended by itself less than a day ago.
select s.operator_id from operator_session s
 where s.token_hash = %(token_hash)s::bytea and s.totp_passed
   and (s.expires_ms <= %(at_ms)s::bigint or s.seen_ms <= %(idle_since_ms)s::bigint);

-- name: touch_session
-- The session was used.
update operator_session set seen_ms = %(at_ms)s::bigint
 where token_hash = %(token_hash)s::bytea and seen_ms < %(at_ms)s::bigint;

-- name: list_sessions
-- An operator's live sessions, oldest first.
select token_hash, created_ms, seen_ms, expires_ms, source, user_agent
  from operator_session
 where operator_id = %(operator_id)s::bigint and totp_passed and expires_ms > %(at_ms)s::bigint
   and seen_ms > %(idle_since_ms)s::bigint
 order by created_ms, token_hash;

-- name: end_session
-- Ends one session. The operator is part of the key, so nobody can end another operator's session.
delete from operator_session where token_hash = %(token_hash)s::bytea and operator_id = %(operator_id)s::bigint;

-- name: end_sessions
-- Ends all sessions of an operator except one, if given.
delete from operator_session
 where operator_id = %(operator_id)s::bigint
   and (%(kept_hash)s::bytea is null or token_hash <> %(kept_hash)s::bytea);

-- name: delete_expired_sessions
-- Deletes sessions that expired a day ago. Until then a form that is sent too late is still known to be its operator's.
-- Rows that another transaction deletes at the moment are skipped.
delete from operator_session where token_hash in (
    select token_hash from operator_session where expires_ms <= %(at_ms)s::bigint - %(kept_ms)s::bigint limit 100 for update skip locked);

-- name: count_attempt
-- Counts an attempt as failed before it is judged. No row if the attempt came too early.
insert into operator_failure as f (key, failures, last_ms, next_ms)
values (%(key)s::bytea, 1, %(at_ms)s::bigint, 0)
on conflict (key) do update
   set failures = case when f.last_ms <= %(forgotten_ms)s::bigint then 1 else f.failures + 1 end,
       last_ms = %(at_ms)s::bigint,
       next_ms = case when f.last_ms <= %(forgotten_ms)s::bigint or f.failures < %(free)s::int then 0
                      else %(at_ms)s::bigint
                           + least(%(longest_ms)s::bigint, 1000 * (1::bigint << least(f.failures - %(free)s::int, 30))) end
 where f.next_ms <= %(at_ms)s::bigint
returning failures;

-- name: read_wait
-- The time from which the next attempt is judged.
select next_ms from operator_failure where key = %(key)s::bytea;

-- name: uncount_attempt
-- Takes back an attempt that was right.
update operator_failure set failures = greatest(failures - 1, 0), next_ms = 0
 where key = %(key)s::bytea;

-- name: delete_failures
-- Drops the counts after a sign-in with both factors.
delete from operator_failure where key = %(key)s::bytea;

-- name: delete_failures_of_operator
-- Drops all counts of one operator at all addresses. All keys that `attempts` makes of a name begin with half its hash.
with named as (
    select substring(sha256(convert_to('name;' || lower(name collate "C"), 'UTF8')) for 16) as beginning
      from operator where operator_id = %(operator_id)s::bigint)
delete from operator_failure f using named n
 where f.key between n.beginning || decode(repeat('00', 16), 'hex') and n.beginning || decode(repeat('ff', 16), 'hex');

-- name: find_source
-- Whether this operator has signed in from this address before.
select 1 from operator_known_source where key = %(key)s::bytea and seen_ms > %(forgotten_ms)s::bigint;

-- name: remember_source
-- Remembers the address of a sign-in.
insert into operator_known_source as s (key, operator_id, seen_ms)
values (%(key)s::bytea, %(operator_id)s::bigint, %(at_ms)s::bigint)
on conflict (key) do update set seen_ms = greatest(s.seen_ms, excluded.seen_ms);

-- name: delete_old_sources
-- Deletes addresses from which the operator has not signed in for long.
delete from operator_known_source where operator_id = %(operator_id)s::bigint and seen_ms <= %(forgotten_ms)s::bigint;

-- name: delete_expired_failures
-- Deletes expired counts.
delete from operator_failure where key in (
    select key from operator_failure where last_ms <= %(forgotten_ms)s::bigint limit 100 for update skip locked);
