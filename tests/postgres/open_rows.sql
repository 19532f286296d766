-- As many deposits that wait for their credit, and orders that wait for their approval, as the large book has of others.
insert into deposit (merchant_id, chain, tx_hash, log_index, block_number, block_hash, sender, address, user_id, amount,
                     status, seen_ms, final_ms)
select merchant_id, chain, 'open ' || tx_hash, log_index, block_number, block_hash, sender, address, user_id, amount,
       'pending', seen_ms, seen_ms
  from deposit where merchant_id = 1;
insert into withdrawal_step (merchant_id, order_id, step_no, to_status, at_ms, cause)
select merchant_id, order_id + 100000, 0, 0, created_ms, 'made' from withdrawal where merchant_id = 1;
insert into withdrawal (merchant_id, order_id, mc_order_id, amount, fee, rate_e8, chain, address, notify_url, status,
                        step_no, deadline_ms, created_ms)
select merchant_id, order_id + 100000, 'open ' || mc_order_id, amount, fee, rate_e8, chain, address, notify_url, 0,
       0, deadline_ms, created_ms
  from withdrawal where merchant_id = 1;
