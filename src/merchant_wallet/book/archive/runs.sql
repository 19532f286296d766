-- One run of the archive at a time, and none beside a move. Home has these.

-- name: lock_runs
-- The lock ends with the session.
select pg_try_advisory_lock(hashtext('archive')) as is_locked;

-- name: find_move
-- A move of a cell or a book that is under way. It copies the rows that a run removes.
select 'cell ' || c.name as what from cell_move m join cell c using (cell_id) where m.state <> 'switched'
 union all
select 'the book of merchant ' || merchant_id from merchant_move where state <> 'switched'
 limit 1;
