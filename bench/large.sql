-- Statements that the bench sends to the database itself; the rest goes through the service's code.

-- name: read_entry_count
-- The number of entries in a book.
select entry_count from book where merchant_id = %(merchant_id)s::bigint;

-- name: tidy
-- Removes dead rows and renews statistics, as autovacuum would some minutes later.
vacuum (analyze);

-- name: checkpoint
-- Writes everything to disk, so that no measurement pays for the filling before it.
checkpoint;
