-- The session of who acts at the console. `standing.py` runs this, on the web side alone.

-- name: find_session
-- Whether the person's session has not been ended.
select 1 from operator_session s join operator o on o.operator_id = s.operator_id
 where s.token_hash = %(token_hash)s::bytea and s.totp_passed and lower(o.name collate "C") = person_of(%(actor)s::text);
