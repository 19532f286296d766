-- Operators, their second factors, sessions and failed attempts. The modules of this folder run these.

-- name: insert_operator
-- A new operator, without a second factor yet.
insert into operator (name, role, merchant_id, password_hash, created_ms)
values (%(name)s::text, %(role)s::text, %(merchant_id)s::bigint, %(password_hash)s::text, %(created_ms)s::bigint)
returning operator_id;

-- name: read_merchant_name
-- Words that no password of this merchant's people should be made of.
select name from merchant where merchant_id = %(merchant_id)s::bigint;

-- name: list_operators
-- The next operators by name.
select operator_id, name, role, merchant_id, status, totp_confirmed_ms is not null as enrolled, language, theme, created_ms,
       (select coalesce(max(x.until_ms), 0) from operator_wait x where x.person = lower(name collate "C")) as counts_ms
  from operator
 where lower(name collate "C") > %(after_name)s::text collate "C"
 order by lower(name collate "C")
 limit %(limit)s::int;

-- name: read_by_name
-- One operator by name, however it was typed.
select operator_id, name, role, merchant_id, status, totp_confirmed_ms is not null as enrolled, language, theme, created_ms,
       (select coalesce(max(x.until_ms), 0) from operator_wait x where x.person = lower(name collate "C")) as counts_ms
  from operator
 where lower(name collate "C") = %(name)s::text collate "C";

-- name: read_by_id
-- One operator.
select operator_id, name, role, merchant_id, status, totp_confirmed_ms is not null as enrolled, language, theme, created_ms,
       (select coalesce(max(x.until_ms), 0) from operator_wait x where x.person = lower(name collate "C")) as counts_ms
  from operator
 where operator_id = %(operator_id)s::bigint;

-- name: lock_by_id
-- One operator that nobody else changes until the transaction ends.
select operator_id, name, role, merchant_id, status, totp_confirmed_ms is not null as enrolled, language, theme, created_ms,
       (select coalesce(max(x.until_ms), 0) from operator_wait x where x.person = lower(name collate "C")) as counts_ms
  from operator
 where operator_id = %(operator_id)s::bigint
   for update;

-- name: begin_wait
-- An operator's word does not count for a while. A platform's first operator does not wait: there is nobody whose check
-- a second account could evade.
insert into operator_wait (person, from_ms, until_ms, cause)
select lower(o.name collate "C"), %(at_ms)s::bigint, %(at_ms)s::bigint + %(wait_ms)s::bigint, %(cause)s::text
  from operator o
 where o.operator_id = %(operator_id)s::bigint and %(wait_ms)s::bigint > 0
   and (%(cause)s::text not in ('created', 'enrolled') or exists (
        select 1 from operator other
         where other.operator_id <> o.operator_id and other.status = 'active' and other.role in ('owner', 'operator')
           and (%(cause)s::text = 'created' or other.totp_confirmed_ms is not null)))
    on conflict do nothing;

-- name: read_wait_end
-- From when a person's word counts, whichever way that person comes in; 0 when it always did.
select coalesce(max(until_ms), 0) from operator_wait where person = person_of(%(actor)s::text);

-- name: count_deciders
-- How many active operators of these roles, other than two persons, have a word that counts.
select count(*) from operator o
 where o.status = 'active' and o.role = any(%(roles)s::text[]) and o.totp_confirmed_ms is not null
   and lower(o.name collate "C") <> all(%(others)s::text[])
   and not exists (select 1 from operator_wait x
                    where x.person = lower(o.name collate "C") and x.until_ms > %(at_ms)s::bigint);

-- name: mark_signed_in
-- An operator is through with both factors; gives when that was the last time, or when the account was made.
with was as (select operator_id, coalesce(signed_in_ms, created_ms) as at_ms from operator
              where operator_id = %(operator_id)s::bigint for update)
update operator o set signed_in_ms = greatest(was.at_ms, %(at_ms)s::bigint) from was
 where o.operator_id = was.operator_id
returning was.at_ms;

-- name: find_any
-- Whether there is an operator at all.
select 1 from operator limit 1;

-- name: lock_first
-- Lets one process at a time look whether there is an operator and make the first. Readers go on.
lock table operator in share row exclusive mode;

-- name: lock_owners
-- The active owners; none of them is disabled or demoted by anybody else until the transaction ends.
select operator_id from operator where role = 'owner' and status = 'active' order by operator_id for update;

-- name: read_password
-- What a name's password is compared with.
select password_hash from operator where operator_id = %(operator_id)s::bigint;

-- name: lock_password
-- What a name's password is compared with, which nobody replaces until the transaction ends.
select password_hash from operator where operator_id = %(operator_id)s::bigint for update;

-- name: write_password
-- A new password.
update operator set password_hash = %(password_hash)s::text where operator_id = %(operator_id)s::bigint;

-- name: replace_password
-- A new password in place of the one that was shown, and of no other.
update operator set password_hash = %(password_hash)s::text
 where operator_id = %(operator_id)s::bigint and password_hash = %(seen_hash)s::text;

-- name: write_role
-- Another role; the merchant's user names its merchant.
update operator set role = %(role)s::text, merchant_id = %(merchant_id)s::bigint where operator_id = %(operator_id)s::bigint;

-- name: write_status
-- Active or disabled.
update operator set status = %(status)s::text where operator_id = %(operator_id)s::bigint;

-- name: write_tastes
-- The pages' language and theme; none is what the browser says.
update operator set language = %(language)s::text, theme = %(theme)s::text where operator_id = %(operator_id)s::bigint;

-- name: forget_totp
-- The second factor is gone, another one must be enrolled.
update operator set totp_sealed = null, totp_confirmed_ms = null, totp_last_step = null
 where operator_id = %(operator_id)s::bigint;

-- name: propose_totp
-- A second factor to be confirmed; one that counts already is left alone.
update operator set totp_sealed = %(sealed)s::bytea
 where operator_id = %(operator_id)s::bigint and totp_confirmed_ms is null
returning operator_id;

-- name: lock_totp
-- The second factor and its last step; two codes are judged one after the other.
select totp_sealed, totp_confirmed_ms, totp_last_step from operator where operator_id = %(operator_id)s::bigint for update;

-- name: take_step
-- The step is used up, and with the first the factor counts; the step never goes back.
update operator
   set totp_last_step = %(step)s::bigint, totp_confirmed_ms = coalesce(totp_confirmed_ms, %(at_ms)s::bigint)
 where operator_id = %(operator_id)s::bigint and coalesce(totp_last_step, -1) < %(step)s::bigint
returning operator_id;

-- name: forget_codes
-- Recovery codes belong to one second factor.
delete from operator_recovery_code where operator_id = %(operator_id)s::bigint;

-- name: insert_codes
-- The recovery codes of a new second factor.
insert into operator_recovery_code (operator_id, code_hash)
select %(operator_id)s::bigint, unnest(%(hashes)s::bytea[]);

-- name: use_code
-- A recovery code counts once.
update operator_recovery_code set used_ms = %(at_ms)s::bigint
 where operator_id = %(operator_id)s::bigint and code_hash = %(code_hash)s::bytea and used_ms is null
returning operator_id;

-- name: count_codes
-- How many recovery codes are left.
select count(*) from operator_recovery_code where operator_id = %(operator_id)s::bigint and used_ms is null;

-- name: insert_session
-- A browser is signed in, or has shown the password.
insert into operator_session (token_hash, operator_id, totp_passed, created_ms, seen_ms, expires_ms, source, user_agent)
values (%(token_hash)s::bytea, %(operator_id)s::bigint, %(totp_passed)s::boolean, %(at_ms)s::bigint, %(at_ms)s::bigint,
        %(expires_ms)s::bigint, %(source)s::text, %(user_agent)s::text);

-- name: read_session
-- A live session by its token, with its operator as that is now.
select s.token_hash, s.created_ms, s.seen_ms, s.expires_ms, s.source, s.user_agent,
       o.operator_id, o.name, o.role, o.merchant_id, o.status, o.totp_confirmed_ms is not null, o.language, o.theme,
       o.created_ms, (select coalesce(max(x.until_ms), 0) from operator_wait x where x.person = lower(o.name collate "C"))
  from operator_session s
  join operator o on o.operator_id = s.operator_id
 where s.token_hash = %(token_hash)s::bytea and s.totp_passed = %(totp_passed)s::boolean and s.expires_ms > %(at_ms)s::bigint
   and s.seen_ms > %(idle_since_ms)s::bigint and o.status = 'active';

-- name: touch_session
-- A session is in use.
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
-- One session is over; whose it is stands there so that nobody ends another's.
delete from operator_session where token_hash = %(token_hash)s::bytea and operator_id = %(operator_id)s::bigint;

-- name: end_sessions
-- All of an operator's sessions are over, but for one that may be kept.
delete from operator_session
 where operator_id = %(operator_id)s::bigint
   and (%(kept_hash)s::bytea is null or token_hash <> %(kept_hash)s::bytea);

-- name: drop_expired
-- Sessions nobody can use any more; those that somebody else drops just now are left to him.
delete from operator_session where token_hash in (
    select token_hash from operator_session where expires_ms <= %(at_ms)s::bigint limit 100 for update skip locked);

-- name: count_attempt
-- Counts an attempt as failed before it is looked at; no row when it came too early.
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
-- When the next attempt may be looked at.
select next_ms from operator_failure where key = %(key)s::bytea;

-- name: forgive_attempt
-- The attempt was none that failed.
update operator_failure set failures = greatest(failures - 1, 0), next_ms = 0
 where key = %(key)s::bytea;

-- name: forget_failures
-- Whoever is signed in with both factors has forgotten nothing.
delete from operator_failure where key = %(key)s::bytea;

-- name: forget_failures_of
-- The same for one operator wherever it was: all keys that `attempts` makes of a name begin with half its hash.
with named as (
    select substring(sha256(convert_to('name;' || lower(name collate "C"), 'UTF8')) for 16) as beginning
      from operator where operator_id = %(operator_id)s::bigint)
delete from operator_failure f using named n
 where f.key between n.beginning || decode(repeat('00', 16), 'hex') and n.beginning || decode(repeat('ff', 16), 'hex');

-- name: find_source
-- Whether somebody of this name has signed in from there.
select 1 from operator_known_source where key = %(key)s::bytea and seen_ms > %(forgotten_ms)s::bigint;

-- name: remember_source
-- An operator has signed in from there.
insert into operator_known_source as s (key, operator_id, seen_ms)
values (%(key)s::bytea, %(operator_id)s::bigint, %(at_ms)s::bigint)
on conflict (key) do update set seen_ms = greatest(s.seen_ms, excluded.seen_ms);

-- name: drop_sources
-- From where an operator has not signed in for long.
delete from operator_known_source where operator_id = %(operator_id)s::bigint and seen_ms <= %(forgotten_ms)s::bigint;

-- name: drop_failures
-- Counts that say nothing any more.
delete from operator_failure where key in (
    select key from operator_failure where last_ms <= %(forgotten_ms)s::bigint limit 100 for update skip locked);
