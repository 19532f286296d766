-- One large book (merchant 1) among 199 small ones, for the plans of queries.
-- Foreign keys are not checked: that takes as long as the rest.
set session_replication_role = replica;
insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)
select m, 'm' || m, 'mk_' || m, 'KFB', 0 from generate_series(1, 200) m;
insert into merchant_secret (merchant_id, secret_no, purpose, sealed, created_ms)
select m, 1, p, 'x', 0 from generate_series(1, 200) m, unnest(array['app', 'callback']) p;
insert into id_range select m, m from generate_series(1, 200) m;
insert into book (merchant_id, id_range, head_hash, last_ms)
select m, m, decode(repeat('00', 32), 'hex'), 0 from generate_series(1, 200) m;
insert into account (merchant_id, account_id, kind, currency)
select m, a, 'merchant', 'KFB' from generate_series(1, 200) m, generate_series(1, 11) a;
create temporary table key as
select 1 as m, 100 + n as k from generate_series(1, 8000) n union all select n, 100 from generate_series(2, 200) n;
insert into account (merchant_id, account_id, kind, currency) select m, k, 'subuser', 'KFB' from key;
insert into sub_user (merchant_id, user_id, ext_user_id, username, address_index, evm_address, tron_address, created_ms)
select m, k, 'u' || k, 'u', k, substr(sha256((m || 'e' || k)::bytea), 1, 20), substr(sha256((m || 't' || k)::bytea), 1, 20), 0
  from key;
insert into wallet_address select merchant_id, evm_address, user_id from sub_user;
insert into wallet_address select merchant_id, tron_address, user_id from sub_user;
insert into issued_address select address, merchant_id from wallet_address;
insert into entry (merchant_id, entry_id, kind, mc_order_id, at_ms, hash)
select m, k, 'merchant_to_user', 'o' || k, k, decode(repeat('00', 32), 'hex') from key;
insert into posting select m, k, 1, 2, k, 'KFB', 1, 0, 1 from key;
insert into withdrawal_step (merchant_id, order_id, step_no, to_status, at_ms, cause) select m, k, 0, 0, k, 'made' from key;
insert into withdrawal_step (merchant_id, order_id, step_no, from_status, to_status, at_ms, cause)
select m, k, 1, 0, 1, k, 'taken' from key where k > 110;
insert into withdrawal_step (merchant_id, order_id, step_no, from_status, to_status, at_ms, cause)
select m, k, 2, 1, 2, k, 'paid' from key where k > 120;
insert into withdrawal (merchant_id, order_id, mc_order_id, amount, fee, rate_e8, chain, address, notify_url, status, step_no,
                        deadline_ms, created_ms)
select m, k, 'w' || k, 2, 1, 0, 'ERC20', 'a', 'u', case when k > 120 then 2 when k > 110 then 1 else 0 end,
       case when k > 120 then 2 when k > 110 then 1 else 0 end, k, k from key;
insert into merchant_address (merchant_id, chain, address)
select m, c, substr(sha256((m || 'own' || c)::bytea), 1, 20) from generate_series(1, 200) m, unnest(array['ERC20', 'TRC20']) c;
insert into deposit (merchant_id, chain, tx_hash, log_index, block_number, block_hash, sender, address, user_id, amount, status,
                     seen_ms, final_ms)
select merchant_id, 'ERC20', 't' || merchant_id || '.' || user_id, 0, user_id, 'b', evm_address, evm_address, user_id, 1,
       case when user_id > 130 then 'credited' when user_id > 120 then 'dust' when user_id > 110 then 'pending' else 'seen' end,
       user_id, case when user_id > 110 then user_id end
  from sub_user;
insert into chain_transfer (chain, tx_hash, log_index, block_number, block_hash, sender, address, merchant_id, amount, taken_ms)
select chain, tx_hash, log_index, block_number, block_hash, sender, address, merchant_id, amount,
       case when status <> 'pending' then final_ms end
  from deposit where final_ms is not null;
insert into credited_transaction select chain, tx_hash, block_hash from deposit where status = 'credited';
insert into deposit_credit select merchant_id, chain, tx_hash, log_index, user_id, 'KFB', 1, 1, block_hash from deposit where status = 'credited';
insert into sweep (chain, address, merchant_id, account_no, branch, address_index, wallet, amount, coin_price, top_up,
                   top_up_fee_limit, token_fee_limit, budget, actor, opened_ms, step, token_tx_hash, ended_ms)
select 'ERC20', evm_address, merchant_id, 1, 0, 1, repeat('w', 20)::bytea, 1, 1, 0, 0, 1, 1, 'a', user_id,
       case when user_id % 100 > 0 then 'done' else 'token' end, 'h', case when user_id % 100 > 0 then 1 end
  from sub_user;
insert into sweep_signed (chain, sweep_id, kind, attempt_no, raw, tx_hash, built_at_block, signed_ms)
select chain, sweep_id, 'token', 1, 'r', 'h' || sweep_id, 0, 0 from sweep;
insert into callback (merchant_id, order_id, status, event_id, created_ms, state, delivered_ms)
select m, k, 2, 'e' || k, 0, case when k > 200 then 'delivered' when k > 150 then 'dead_letter' else 'due' end, 1 from key where k > 120;
insert into callback_attempt (merchant_id, order_id, status, attempt_no, at_ms) select m, k, 2, 1, k from key where k > 120;
insert into payout (merchant_id, order_id, chain, phase, fence, claimed_by, claimed_until_ms, signed_no)
select m, k, 'ERC20', case when k > 120 then 'closed' else 'taken_up' end, 1, 'p', 0, 1 from key where k > 110;
insert into wallet_nonce (chain, wallet, nonce, purpose, merchant_id, order_id, since_ms)
select 'ERC20', repeat('w', 20)::bytea, row_number() over (), 'payout', m, k, 0 from key where k > 110;
insert into payout_reservation (merchant_id, order_id, chain, wallet, nonce, amount, recipient, reserved_ms, ended_no)
select merchant_id, order_id, chain, wallet, nonce, 1, decode(lpad(to_hex(nonce), 40, '0'), 'hex'), 0, case when order_id % 100 > 0 then nonce end from wallet_nonce;
insert into payout_signed (merchant_id, order_id, attempt_no, raw, tx_hash, built_at_block, signed_ms)
select merchant_id, order_id, 1, 'r', 'h' || nonce, 0, 0 from wallet_nonce;
insert into wallet_session (merchant_id, token_hash, user_id, is_framed, created_ms, seen_ms, expires_ms)
select merchant_id, sha256((merchant_id || 's' || user_id)::bytea), user_id, false, user_id, user_id, user_id + 1 from sub_user;
insert into daily_figure
select m, d, 'withdraw', 'USDT', 1, 1, 0 from generate_series(0, 200) m, generate_series(1, 200) d;
insert into figure_cursor (merchant_id) select merchant_id from book;
create table nonce_0 partition of nonce for values in (0);
create table nonce_1 partition of nonce for values in (1);
insert into nonce select m, 'n' || k, k % 2, gen_random_uuid() from key;
reset session_replication_role;
analyze;
