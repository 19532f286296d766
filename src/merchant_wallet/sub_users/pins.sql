-- The security PIN. `pins.py` runs these.

-- name: lock_pin
-- Locks the stored PIN and reads it, so that parallel attempts are counted one by one. Inserts that reference the row do not
-- wait. It is an update, because transactions of a cell begin with a write.
update sub_user set pin_failures = pin_failures
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint and {book_is_open}
returning pin_hash, pin_failures, pin_locked_until_ms;

-- name: count_attempt
-- Counts the attempt as wrong, with the lock of a wrong one. The right PIN undoes this afterwards.
update sub_user
   set pin_failures = %(pin_failures)s::int, pin_locked_until_ms = %(pin_locked_until_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint and pin_hash = %(pin_hash)s::text;

-- name: forget_failures
-- The right PIN resets the count, unless the PIN was changed meanwhile.
update sub_user
   set pin_failures = 0, pin_locked_until_ms = 0
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint and pin_hash = %(pin_hash)s::text and {book_is_open};

-- name: write_first_pin
-- Only if none is set. The caller holds the book's lock.
update sub_user
   set pin_hash = %(pin_hash)s::text, pin_set_ms = %(at_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint and pin_hash is null;

-- name: change_pin
-- Replaces exactly the PIN that was checked.
update sub_user
   set pin_hash = %(pin_hash)s::text, pin_set_ms = %(at_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint and pin_hash = %(old_hash)s::text and {book_is_open};

-- name: clear_pin
-- Removes the PIN and its lock, and revokes the links created so far. The caller holds the book's lock.
update sub_user
   set pin_hash = null, pin_set_ms = null, pin_failures = 0, pin_locked_until_ms = 0,
       links_void_until_ms = greatest(links_void_until_ms, %(at_ms)s::bigint)
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint;
