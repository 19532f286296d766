-- The public key of checkpoints, as workers write it.

-- name: lock_keys
-- Lets one worker at a time set a key; readers are not blocked. LOCK TABLE would need the right to change keys.
select pg_advisory_xact_lock(hashtext('checkpoint_key'));

-- name: add_key
-- From now on this is the key.
insert into checkpoint_key (public_key, since_ms) values (%(public_key)s::bytea, %(since_ms)s::bigint);
