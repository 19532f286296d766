-- The payment PIN. `pins.py` runs these.

-- name: lock_pin
-- What is kept of a sub-user's PIN, locked until the transaction ends: of several attempts one after the other sees the
-- count. References to the row need not wait.
select pin_hash, pin_failures, pin_locked_until_ms from sub_user
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint
   for no key update;

-- name: count_attempt
-- The attempt counts as a wrong one, with the lock that a wrong one brings, until it has turned out to be right.
update sub_user
   set pin_failures = %(pin_failures)s::int, pin_locked_until_ms = %(pin_locked_until_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint and pin_hash = %(pin_hash)s::text;

-- name: forget_failures
-- The right PIN clears what was counted, if it is still the PIN.
update sub_user
   set pin_failures = 0, pin_locked_until_ms = 0
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint and pin_hash = %(pin_hash)s::text;

-- name: write_first_pin
-- Where there is none; the book's lock is held.
update sub_user
   set pin_hash = %(pin_hash)s::text, pin_set_ms = %(at_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint and pin_hash is null;

-- name: change_pin
-- In place of the one that was asked for, and of no other.
update sub_user
   set pin_hash = %(pin_hash)s::text, pin_set_ms = %(at_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint and pin_hash = %(old_hash)s::text;

-- name: clear_pin
-- An operator takes it away, and the lock with it, and voids the links made so far; the book's lock is held.
update sub_user
   set pin_hash = null, pin_set_ms = null, pin_failures = 0, pin_locked_until_ms = 0,
       links_void_until_ms = greatest(links_void_until_ms, %(at_ms)s::bigint)
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint;
