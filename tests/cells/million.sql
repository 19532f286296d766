-- A cell with a million sub-users, deposits and orders, nearly all of merchant 1. The merchants are there already. Foreign keys are not
-- checked, indexes are made afterwards, and those for parts of names are left out: all of that takes longer than the rest.
set session_replication_role = replica;
set work_mem = '64MB';
set maintenance_work_mem = '256MB';
create temporary table dropped as
select indexname, indexdef from pg_indexes
 where schemaname = current_schema and tablename in ('account', 'sub_user', 'deposit', 'withdrawal', 'callback')
   and indexname not in (select conname from pg_constraint);
do $$
declare one record;
begin
    for one in select * from dropped loop
        execute format('drop index %I', one.indexname);
    end loop;
end $$;
insert into book (merchant_id, id_range, head_hash, last_ms, is_open)
select m, m, decode(repeat('00', 32), 'hex'), 0, m < 20 from generate_series(1, 20) m;
insert into account (merchant_id, account_id, kind, currency)
select case when n % 100 = 0 then 1 + n / 100 % 20 else 1 end, 100 + n, 'subuser', 'KFB' from generate_series(1, 1000000) n;
insert into sub_user (merchant_id, user_id, ext_user_id, username, address_index, evm_address, tron_address, created_ms)
select merchant_id, account_id, 'u' || account_id, 'u' || account_id, account_id,
       substr(sha256(('e' || account_id)::bytea), 1, 20), substr(sha256(('t' || account_id)::bytea), 1, 20), account_id
  from account;
insert into deposit (merchant_id, chain, tx_hash, log_index, block_number, block_hash, sender, address, user_id, amount, status,
                     seen_ms, final_ms)
select merchant_id, case when user_id % 2 = 0 then 'ERC20' else 'TRC20' end, 't' || user_id, 0, user_id, 'b', evm_address, evm_address,
       user_id, 1, case when user_id % 1000 > 0 then 'credited' when user_id % 2000 > 0 then 'held' else 'seen' end,
       user_id, case when user_id % 2000 > 0 then user_id end
  from sub_user;
insert into withdrawal (merchant_id, order_id, mc_order_id, amount, fee, rate_e8, chain, address, notify_url, status, step_no,
                        deadline_ms, created_ms)
select merchant_id, user_id, 'w' || user_id, 2 + user_id % 100, 1, 0, case when user_id % 2 = 0 then 'ERC20' else 'TRC20' end, 'a', 'u',
       case when user_id % 1000 > 0 then 2 else 0 end, 0, user_id, user_id
  from sub_user;
insert into callback (merchant_id, order_id, status, event_id, created_ms, state, delivered_ms)
select merchant_id, order_id, 2, 'e' || order_id, created_ms, 'delivered', 1 from withdrawal where status = 2 and order_id % 10 = 1;
do $$
declare one record;
begin
    for one in select * from dropped where indexdef not like '% USING gin %' loop
        execute one.indexdef;
    end loop;
end $$;
reset session_replication_role;
analyze;
