-- Sessions of the wallet page. `sessions.py` runs these.

-- name: lock_sub_user
-- Of two sessions opened at once one waits, so that neither sees more sessions than there may be. Links that were made
-- until this moment are void.
select links_void_until_ms from sub_user
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint
   for no key update;

-- name: insert_session
-- A browser that a link let in.
insert into wallet_session (merchant_id, token_hash, user_id, is_framed, created_ms, seen_ms, expires_ms)
values (%(merchant_id)s::bigint, %(token_hash)s::bytea, %(user_id)s::bigint, %(is_framed)s::boolean, %(at_ms)s::bigint,
        %(at_ms)s::bigint, %(expires_ms)s::bigint);

-- name: end_oldest
-- A link opens more than once: of one sub-user's sessions the newest are kept.
delete from wallet_session
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint
   and token_hash <> all (array(
       select k.token_hash from wallet_session k
        where k.merchant_id = %(merchant_id)s::bigint and k.user_id = %(user_id)s::bigint
        order by k.created_ms desc, k.token_hash limit %(kept)s::int));

-- name: read_session
-- A session that still holds, with the language its sub-user chose.
select w.merchant_id, w.user_id, w.is_framed, w.created_ms, w.seen_ms, w.expires_ms, s.language
  from wallet_session w
  join sub_user s on s.merchant_id = w.merchant_id and s.user_id = w.user_id
 where w.merchant_id = %(merchant_id)s::bigint and w.token_hash = %(token_hash)s::bytea
   and w.expires_ms > %(at_ms)s::bigint and w.seen_ms > %(idle_since_ms)s::bigint;

-- name: find_live
-- Those of the named sessions that still hold, for all open pages at once.
select w.merchant_id, w.token_hash
  from unnest(%(merchant_ids)s::bigint[], %(token_hashes)s::bytea[]) u (merchant_id, token_hash)
  join wallet_session w on w.merchant_id = u.merchant_id and w.token_hash = u.token_hash
 where w.expires_ms > %(at_ms)s::bigint and w.seen_ms > %(idle_since_ms)s::bigint;

-- name: write_seen
-- When the page was last asked for something; never back, whichever of two requests comes first.
update wallet_session set seen_ms = greatest(seen_ms, %(at_ms)s::bigint)
 where merchant_id = %(merchant_id)s::bigint and token_hash = %(token_hash)s::bytea;

-- name: end_session
-- The one whose token this is.
delete from wallet_session where merchant_id = %(merchant_id)s::bigint and token_hash = %(token_hash)s::bytea;

-- name: end_sessions
-- All of a sub-user's.
delete from wallet_session where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint;

-- name: drop_expired
-- Those whose time is over, whoever's they were.
delete from wallet_session where expires_ms <= %(at_ms)s::bigint;
