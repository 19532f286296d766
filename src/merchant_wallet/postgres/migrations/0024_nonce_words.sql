-- Ethereum's own words: nonce for the number of a wallet's transaction, cancel for a transaction that only uses a nonce
-- up, top-up for coin that is sent to a deposit address before it is swept.

alter table payout_sequence rename to wallet_nonce;
alter table wallet_nonce rename column sequence to nonce;
alter table wallet_nonce rename column filled_ms to cancelled_ms;
alter table wallet_nonce drop constraint payout_sequence_purpose_check;
alter table wallet_nonce drop constraint payout_sequence_filled;
drop index payout_sequence_loose;
update wallet_nonce set purpose = case purpose when 'fill' then 'cancel' else 'top_up' end where purpose in ('fill', 'fuel');
alter table wallet_nonce add constraint wallet_nonce_purpose_check
    check (purpose in ('payout', 'free', 'cancel', 'top_up', 'lost'));
alter table wallet_nonce add constraint wallet_nonce_cancelled check (cancelled_ms is null or purpose = 'cancel');
create index wallet_nonce_open on wallet_nonce (chain, wallet, nonce)
 where purpose = 'free' or (purpose = 'cancel' and cancelled_ms is null);
alter table wallet_nonce rename constraint payout_sequence_pkey to wallet_nonce_pkey;
alter table wallet_nonce rename constraint payout_sequence_chain_check to wallet_nonce_chain_check;
alter table wallet_nonce rename constraint payout_sequence_owner to wallet_nonce_owner;
alter table wallet_nonce rename constraint payout_sequence_sequence_check to wallet_nonce_nonce_check;
alter table wallet_nonce rename constraint payout_sequence_wallet_check to wallet_nonce_wallet_check;
alter table wallet_nonce rename constraint payout_sequence_merchant_id_order_id_key to wallet_nonce_merchant_id_order_id_key;
alter table wallet_nonce rename constraint payout_sequence_chain_wallet_sequence_merchant_id_order_id_key
    to wallet_nonce_chain_wallet_nonce_merchant_id_order_id_key;

alter table hot_wallet rename column next_sequence to next_nonce;
alter table hot_wallet rename constraint hot_wallet_next_sequence_check to hot_wallet_next_nonce_check;

alter table payout_reservation rename column sequence to nonce;
alter table payout_reservation rename constraint payout_reservation_chain_wallet_sequence_key
    to payout_reservation_chain_wallet_nonce_key;
alter table payout_reservation rename constraint payout_reservation_chain_wallet_sequence_merchant_id_order_fkey
    to payout_reservation_chain_wallet_nonce_merchant_id_order_id_fkey;

alter table filler_signed rename to cancel_signed;
alter table cancel_signed rename column sequence to nonce;
alter table cancel_signed rename constraint filler_signed_pkey to cancel_signed_pkey;
alter table cancel_signed rename constraint filler_signed_tx_hash_key to cancel_signed_tx_hash_key;
alter table cancel_signed rename constraint filler_signed_attempt_no_check to cancel_signed_attempt_no_check;
alter table cancel_signed rename constraint filler_signed_built_at_block_check to cancel_signed_built_at_block_check;
alter table cancel_signed rename constraint filler_signed_raw_check to cancel_signed_raw_check;
alter table cancel_signed rename constraint filler_signed_tx_hash_check to cancel_signed_tx_hash_check;
alter table cancel_signed rename constraint filler_signed_chain_wallet_sequence_fkey to cancel_signed_chain_wallet_nonce_fkey;

alter table sweep rename column fuel to top_up;
alter table sweep rename column fuel_fee_limit to top_up_fee_limit;
alter table sweep rename column fuel_sequence to top_up_nonce;
alter table sweep rename column token_sequence to token_nonce;
alter table sweep rename column fuel_tx_hash to top_up_tx_hash;
alter table sweep rename column fuel_fee to top_up_fee;
alter table sweep drop constraint sweep_step_check;
alter table sweep drop constraint sweep_ended;
alter table sweep drop constraint sweep_fuelled;
update sweep set step = 'top_up' where step = 'fuel';
alter table sweep add constraint sweep_step_check check (step in ('top_up', 'token', 'done', 'failed', 'dropped'));
alter table sweep add constraint sweep_ended check ((ended_ms is null) = (step in ('top_up', 'token')));
alter table sweep add constraint sweep_topped_up check (step <> 'top_up' or top_up > 0);
alter table sweep rename constraint sweep_fuel_check to sweep_top_up_check;
alter table sweep rename constraint sweep_fuel_fee_check to sweep_top_up_fee_check;
alter table sweep rename constraint sweep_fuel_fee_limit_check to sweep_top_up_fee_limit_check;
alter table sweep rename constraint sweep_fuel_sequence_check to sweep_top_up_nonce_check;
alter table sweep rename constraint sweep_fuel_tx_hash_check to sweep_top_up_tx_hash_check;
alter table sweep rename constraint sweep_token_sequence_check to sweep_token_nonce_check;
alter table sweep rename constraint sweep_chain_wallet_fuel_sequence_key to sweep_chain_wallet_top_up_nonce_key;
alter table sweep rename constraint sweep_chain_wallet_fuel_sequence_fkey to sweep_chain_wallet_top_up_nonce_fkey;

alter table sweep_signed drop constraint sweep_signed_kind_check;
update sweep_signed set kind = 'top_up' where kind = 'fuel';
alter table sweep_signed add constraint sweep_signed_kind_check check (kind in ('top_up', 'token'));
