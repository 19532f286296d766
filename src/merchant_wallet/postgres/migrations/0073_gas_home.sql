-- kind: expand
-- Gas of cancelled nonces and of cold transfers: more purposes of a network fee, and what was read of it.

-- step: transaction
-- squawk-ignore ban-drop-constraint
alter table network_fee drop constraint if exists network_fee_purpose_check;
alter table network_fee add constraint network_fee_purpose_check
    check (purpose in ('payout', 'cancel', 'cold', 'refill')) not valid;
-- Up to which ended cold transfer the fees of a chain are known. One of a chain is open at a time, so they end in order.
alter table network_fee_cursor add column if not exists cold_transfer_id bigint not null default 0
    constraint network_fee_cursor_cold check (cold_transfer_id >= 0);
-- When the chain was asked what the cancellation of a nonce has cost.
alter table wallet_nonce add column if not exists fee_read_ms bigint;

-- step: transaction
alter table network_fee validate constraint network_fee_purpose_check;

-- step: concurrently
create index concurrently if not exists wallet_nonce_fee on wallet_nonce (chain, wallet, nonce)
    where cancelled_ms is not null and fee_read_ms is null;
