-- The chains and the currencies stand in one place each. A new chain is a migration that replaces `chain_codes` and gives
-- its account to the books there are. A test compares both lists with the program's tables.

-- The chains that the program knows. Whether one is on is the settings' affair.
create function chain_codes() returns text[] language sql immutable parallel safe
    return array['ERC20', 'TRC20', 'BEP20'];

create function currency_codes() returns text[] language sql immutable parallel safe
    return array['USDT', 'KFB'];

create domain chain_code as text check (value = any (chain_codes()));

alter table chain_block alter column chain type chain_code;
alter table chain_cursor drop constraint chain_cursor_chain_check, alter column chain type chain_code;
alter table credited_transaction drop constraint credited_transaction_chain_check, alter column chain type chain_code;
alter table custody_address drop constraint custody_address_chain_check, alter column chain type chain_code;
alter table custody_cursor drop constraint custody_cursor_chain_check, alter column chain type chain_code;
alter table custody_movement drop constraint custody_movement_chain_check, alter column chain type chain_code;
alter table custody_survey drop constraint custody_survey_chain_check, alter column chain type chain_code;
alter table deposit drop constraint deposit_chain_check, alter column chain type chain_code;
alter table deposit_credit alter column chain type chain_code;
alter table cancel_signed alter column chain type chain_code;
alter table hot_wallet drop constraint hot_wallet_chain_check, alter column chain type chain_code;
alter table merchant_address drop constraint merchant_address_chain_check, alter column chain type chain_code;
alter table payout_reservation drop constraint payout_reservation_chain_check, alter column chain type chain_code;
alter table wallet_nonce drop constraint wallet_nonce_chain_check, alter column chain type chain_code;
alter table payout_stop drop constraint payout_stop_chain_check, alter column chain type chain_code;
alter table reconciliation drop constraint reconciliation_chain_check, alter column chain type chain_code;
alter table sandbox_deposit drop constraint sandbox_deposit_chain_check, alter column chain type chain_code;
alter table sandbox_transfer drop constraint sandbox_transfer_chain_check, alter column chain type chain_code;
alter table sweep drop constraint sweep_chain_check, alter column chain type chain_code;
alter table sweep_signed alter column chain type chain_code;
alter table treasury_movement drop constraint treasury_movement_chain_check, alter column chain type chain_code;
alter table withdrawal drop constraint withdrawal_chain_check, alter column chain type chain_code;

alter domain currency drop constraint currency_check;
alter domain currency add constraint currency_check check (value = any (currency_codes()));
alter table merchant drop constraint merchant_currency_mode_check, alter column currency_mode type currency;
alter table rate_history drop constraint rate_history_direction_check;
alter table rate_history add constraint rate_history_direction_check check (
    split_part(direction, ':', 1) = any (currency_codes()) and split_part(direction, ':', 2) = any (currency_codes())
    and split_part(direction, ':', 1) <> split_part(direction, ':', 2)
    and direction = split_part(direction, ':', 1) || ':' || split_part(direction, ':', 2));

-- An account for each chain, which may go below zero.
alter domain account_kind drop constraint account_kind_check;
alter domain account_kind add constraint account_kind_check check (
    value in ('merchant', 'subuser', 'hold', 'fees', 'exchange', 'adjustment')
    or (value like 'chain:%' and substr(value, 7) = any (chain_codes())));
alter table account drop constraint account_floor, drop column floor;
alter table account add column floor bigint not null generated always as (
    case when kind in ('exchange', 'adjustment') or kind like 'chain:%' then -4611686018427387904 else 0 end) stored;
alter table account add constraint account_floor check (balance >= floor);
insert into account (merchant_id, account_id, kind, currency) select merchant_id, 12, 'chain:BEP20', 'USDT' from book;
