-- The public key of checkpoints.

-- name: read_key
-- The present one.
select public_key from checkpoint_key order by key_no desc limit 1;
