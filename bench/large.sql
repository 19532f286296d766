-- What the bench asks the database itself, beside what it does through the service's code.

-- name: read_entry_count
-- How far a book is filled.
select entry_count from book where merchant_id = %(merchant_id)s::bigint;

-- name: tidy
-- Dead rows cleared and statistics fresh, as autovacuum would have it some minutes later.
vacuum (analyze);

-- name: checkpoint
-- Everything written so far is on disk, so that no measurement pays for the filling before it.
checkpoint;
