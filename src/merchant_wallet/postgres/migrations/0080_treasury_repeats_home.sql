-- kind: contract
-- The index treasury_movement_once replaces this constraint, which kept a corrected record from being made anew.

-- step: transaction
-- squawk-ignore ban-drop-constraint
alter table treasury_movement drop constraint if exists treasury_movement_chain_tx_hash_direction_amount_key;
