-- The public key of checkpoints, as workers write it.

-- name: lock_keys
-- One worker at a time names a key; who only reads is not hindered.
lock table checkpoint_key in share row exclusive mode;

-- name: add_key
-- From here on this is the key.
insert into checkpoint_key (public_key, since_ms) values (%(public_key)s::bytea, %(since_ms)s::bigint);
