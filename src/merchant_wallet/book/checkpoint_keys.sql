-- The public key of checkpoints.

-- name: read_key
-- The current one.
select public_key from checkpoint_key order by key_no desc limit 1;

-- name: list_keys
-- Every key that the service ever had, oldest first.
select public_key from checkpoint_key order by key_no;
