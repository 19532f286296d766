-- The turn of the process that shows the platform's metrics: an advisory lock of its session.

-- name: take_turn
-- Take the turn if nobody has it. The schema is part of the name, since a database may have several platforms.
select pg_try_advisory_lock(hashtextextended('platform_metrics ' || current_schema(), 0));

-- name: give_turn_back
-- Let another process have the turn.
select pg_advisory_unlock(hashtextextended('platform_metrics ' || current_schema(), 0));
