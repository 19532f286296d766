-- Books that are closed: those that are being moved, and the old copies of moved ones.

-- name: find_closed
-- Whether a book is here and closed.
select from book where merchant_id = %(merchant_id)s::bigint and not is_open;
