-- What an operator lets arrive on a chain of the sandbox is a deposit.

alter table sandbox_arrival rename to sandbox_deposit;
alter table sandbox_deposit rename constraint sandbox_arrival_pkey to sandbox_deposit_pkey;
alter table sandbox_deposit rename constraint sandbox_arrival_amount_units_check to sandbox_deposit_amount_units_check;
alter table sandbox_deposit rename constraint sandbox_arrival_block_number_check to sandbox_deposit_block_number_check;
alter table sandbox_deposit rename constraint sandbox_arrival_chain_check to sandbox_deposit_chain_check;
alter table sandbox_deposit rename constraint sandbox_arrival_recipient_check to sandbox_deposit_recipient_check;
alter table sandbox_deposit rename constraint sandbox_arrival_sender_check to sandbox_deposit_sender_check;
