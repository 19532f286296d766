-- kind: expand
-- The entry of a credit may be in the archive. `book verify` finds a credit without its entry.
-- Whoever adds a credit adds its entry in the same statement group, so older programs do not need the constraint.
-- squawk-ignore ban-drop-constraint
alter table deposit_credit drop constraint if exists deposit_credit_merchant_id_entry_id_fkey;
