-- The public key of checkpoints.

-- name: read_key
-- The current one.
select public_key from checkpoint_key order by key_no desc limit 1;
