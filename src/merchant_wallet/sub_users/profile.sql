-- A sub-user's name and language. `profile.py` runs these.

-- name: write_username
-- The merchant sees this name too.
update sub_user set username = %(value)s::text
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint;

-- name: write_language
-- The language of the page.
update sub_user set language = %(value)s::text
 where merchant_id = %(merchant_id)s::bigint and user_id = %(user_id)s::bigint
   and {book_is_open};
