-- kind: contract
-- The unique index of records that count replaces this constraint, which also held for corrected ones.

-- squawk-ignore ban-drop-constraint
alter table treasury_movement drop constraint if exists treasury_movement_chain_tx_hash_direction_amount_key;
