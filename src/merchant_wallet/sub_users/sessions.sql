-- Sessions of the wallet page. `sessions.py` runs these.

-- name: lock_sub_user
-- Locks the sub-user, so that sessions opened at the same time are counted one by one. Links created until this moment are
-- revoked. It is an update, because transactions of a cell begin with a write.
update sub_user set pin_failures = pin_failures
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint and {book_is_open}
returning links_void_until_ms;

-- name: insert_session
-- A new session.
insert into wallet_session (merchant_id, token_hash, user_id, is_framed, created_ms, seen_ms, expires_ms)
values (%(merchant_id)s::bigint, %(token_hash)s::bytea, %(user_id)s::bigint, %(is_framed)s::boolean, %(at_ms)s::bigint,
        %(at_ms)s::bigint, %(expires_ms)s::bigint);

-- name: end_oldest
-- A link can be used more than once: only the newest sessions of a sub-user are kept.
delete from wallet_session
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint
   and token_hash <> all (array(
       select k.token_hash from wallet_session k
        where k.merchant_id = %(merchant_id)s::bigint and k.user_id = %(user_id)s::bigint
        order by k.created_ms desc, k.token_hash limit %(kept)s::int));

-- name: read_session
-- A session that has not ended, with the sub-user's language.
select w.merchant_id, w.user_id, w.is_framed, w.created_ms, w.seen_ms, w.expires_ms, s.language
  from wallet_session w
  join sub_user s on s.merchant_id = w.merchant_id and s.user_id = w.user_id
 where w.merchant_id = %(merchant_id)s::bigint and w.token_hash = %(token_hash)s::bytea
   and w.expires_ms > %(at_ms)s::bigint and w.seen_ms > %(idle_since_ms)s::bigint;

-- name: find_live
-- The given sessions that have not ended, for all open pages at once.
select w.merchant_id, w.token_hash
  from unnest(%(merchant_ids)s::bigint[], %(token_hashes)s::bytea[]) u (merchant_id, token_hash)
  join wallet_session w on w.merchant_id = u.merchant_id and w.token_hash = u.token_hash
 where w.expires_ms > %(at_ms)s::bigint and w.seen_ms > %(idle_since_ms)s::bigint;

-- name: write_seen
-- The time of the last use. `greatest`: of two requests at once the later time stays.
update wallet_session set seen_ms = greatest(seen_ms, %(at_ms)s::bigint)
 where merchant_id = %(merchant_id)s::bigint and token_hash = %(token_hash)s::bytea and {book_is_open};

-- name: end_session
-- The session of one token.
delete from wallet_session
 where merchant_id = %(merchant_id)s::bigint and token_hash = %(token_hash)s::bytea and {book_is_open};

-- name: end_sessions
-- All sessions of a sub-user.
delete from wallet_session
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint and {book_is_open};

-- name: drop_expired
-- All sessions, of any merchant, whose twelve hours are over.
delete from wallet_session where expires_ms <= %(at_ms)s::bigint;
