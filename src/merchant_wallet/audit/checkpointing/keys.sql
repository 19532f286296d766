-- The public key of checkpoints, as workers write it.

-- name: lock_keys
-- One worker at a time names a key; who only reads is not hindered. LOCK TABLE would take the right to change keys.
select pg_advisory_xact_lock(hashtext('checkpoint_key'));

-- name: add_key
-- From here on this is the key.
insert into checkpoint_key (public_key, since_ms) values (%(public_key)s::bytea, %(since_ms)s::bigint);
