-- The statements of one batch, in the order they are sent. `store.py` runs them. The first parameter is always the merchant.

-- name: lock_book
-- Takes the book's lock by updating its row, and moves the book's clock, which never goes back.
update book set last_ms = greatest(last_ms, $2::bigint) where merchant_id = $1::bigint
returning id_range, id_counter, next_range, entry_count, head_hash, last_ms, settings_version, withdrawn_day, withdrawn_units;

-- name: find_nonces
-- The batch's nonces that were used before, on any day that is still kept.
select nonce from nonce where merchant_id = $1::bigint and nonce = any($2::text[]);

-- name: read_accounts
-- The balances of the fixed accounts that the batch names.
select a.account_id, a.balance
  from unnest($2::bigint[]) u
 cross join lateral (select account_id, balance from account where merchant_id = $1::bigint and account_id = u limit 1) a;

-- Looks each account up by the whole key of its index. `lateral` with a limit allows no other plan. A join that was planned
-- while the table was new would read all rows of the merchant.

-- name: read_sub_users_by_ext
-- Sub-users by the merchant's own ids, with their balances.
select {sub_user}, a.balance
  from unnest($2::text[]) u
 cross join lateral (select * from sub_user where merchant_id = $1::bigint and ext_user_id = u limit 1) s
 cross join lateral (select * from account where merchant_id = $1::bigint and account_id = s.user_id limit 1) a;

-- name: read_sub_users_by_address
-- Sub-users by a wallet address of either network.
select {sub_user}, a.balance
  from unnest($2::bytea[]) u
 cross join lateral (select user_id from wallet_address where merchant_id = $1::bigint and address = u limit 1) w
 cross join lateral (select * from sub_user where merchant_id = $1::bigint and user_id = w.user_id limit 1) s
 cross join lateral (select * from account where merchant_id = $1::bigint and account_id = s.user_id limit 1) a;

-- name: find_earlier_entries
-- Earlier transfers, exchanges and named adjustments with an order id of the batch. Mostly there are none.
select e.entry_id, e.kind, e.mc_order_id, e.rate_e8, e.facts
  from unnest($2::text[]) u
 cross join lateral (
       select * from entry where merchant_id = $1::bigint and mc_order_id = u and kind = any($3::text[]) limit 10) e;

-- name: read_postings
-- The postings of those entries.
select entry_id, source_id, target_id, currency, amount, source_balance, target_balance from posting
 where merchant_id = $1::bigint and entry_id = any($2::bigint[]) order by entry_id, posting_no;

-- name: read_withdrawals
-- Orders by their own ids or by the merchant's.
select order_id, mc_order_id, amount, fee, rate_e8, chain, address, notify_url, status, step_no, approved_ms,
       deadline_ms, created_ms, finished_ms, notified_ms, tx_hash, second_limit_units, first_approved_by, approved_by,
       first_approved_ms, first_eligible_ms, approved_eligible_ms
  from withdrawal where merchant_id = $1::bigint and order_id = any($2::bigint[])
union
select order_id, mc_order_id, amount, fee, rate_e8, chain, address, notify_url, status, step_no, approved_ms,
       deadline_ms, created_ms, finished_ms, notified_ms, tx_hash, second_limit_units, first_approved_by, approved_by,
       first_approved_ms, first_eligible_ms, approved_eligible_ms
  from withdrawal where merchant_id = $1::bigint and mc_order_id = any($3::text[]);

-- name: read_stops
-- A row without an order while evidence of a rollback is open, and a row for each of these orders that is frozen.
-- It is one statement, because an acceptance freezes orders and deletes the evidence: this sees all of it or nothing.
select null::bigint from rollback_evidence
union all
select order_id from payout
 where merchant_id = $1::bigint and order_id = any($2::bigint[]) and frozen_ms is not null;

-- name: read_deposits
-- Deposits by their keys, with their credit if any, whether the address is the merchant's own, and the block that the
-- transaction was first credited from.
select d.chain, d.tx_hash, d.log_index, d.address, d.amount, m.address is not null, d.status = 'pending',
       d.block_hash, d.decided_by, t.block_hash, c.entry_id, c.currency, c.amount, c.rate_e8
  from unnest($2::text[], $3::text[], $4::int[]) k (chain, tx_hash, log_index)
  join deposit d on d.merchant_id = $1::bigint and d.chain = k.chain and d.tx_hash = k.tx_hash and d.log_index = k.log_index
  left join deposit_credit c on c.merchant_id = $1::bigint and c.chain = d.chain and c.tx_hash = d.tx_hash and c.log_index = d.log_index
  left join credited_transaction t on t.chain = d.chain and t.tx_hash = d.tx_hash
  left join merchant_address m on m.merchant_id = $1::bigint and m.address = d.address;

-- name: read_rates
-- The platform's rates (merchant 0) and the merchant's own, which override them for each direction.
select merchant_id, usdt_kfb_e8, usdt_kfb_paused, usdt_kfb_set_ms, usdt_kfb_max_age_ms,
       kfb_usdt_e8, kfb_usdt_paused, kfb_usdt_set_ms, kfb_usdt_max_age_ms
  from rate where merchant_id in (0, $1::bigint) order by merchant_id;

-- name: find_batch
-- Whether a batch whose COMMIT got no answer was committed: then its own id is among the nonces.
select 1 from nonce where merchant_id = $1::bigint and nonce = $2::text;

-- name: insert_nonces
-- Claims the batch's nonces and its own id, on the day of the book's clock.
insert into nonce (merchant_id, nonce, day) select $1::bigint, u, $2::int from unnest($3::text[]) u;

-- name: insert_entries
-- Appends entries to the journal.
insert into entry (merchant_id, entry_id, kind, mc_order_id, at_ms, rate_e8, facts, hash)
select $1::bigint, u.* from unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::bytea[]) u;

-- name: insert_postings
-- The postings of those entries.
insert into posting (merchant_id, entry_id, posting_no, source_id, target_id, currency, amount, source_balance, target_balance)
select $1::bigint, u.*
  from unnest($2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[]) u;

-- name: update_accounts
-- The new balances. `day` and `day_debited` change only where a sub-user was debited.
-- If the number of rows is not the one that the rules decided, the division by zero fails the batch before its COMMIT.
-- The rows are found by the whole key first. In a direct join, a table that was never analyzed is read for all accounts of the
-- merchant. (The table is one heap: in a partitioned table a ctid would not identify one row.)
with changed as (
    update account a
       set balance = u.balance, day = coalesce(u.day, a.day), day_debited = coalesce(u.day_debited, a.day_debited)
      from unnest($2::bigint[], $3::bigint[], $4::int[], $5::bigint[]) u (account_id, balance, day, day_debited)
     cross join lateral (select ctid as tid from account where merchant_id = $1::bigint and account_id = u.account_id limit 1) s
     where a.ctid = s.tid
    returning 1)
select 1 / (count(*) = $6::bigint)::int from changed;

-- name: insert_accounts
-- The accounts of new sub-users.
insert into account (merchant_id, account_id, kind, currency, balance, day, day_debited)
select $1::bigint, u.account_id, 'subuser', u.currency, u.balance, u.day, u.day_debited
  from unnest($2::bigint[], $3::text[], $4::bigint[], $5::int[], $6::bigint[]) u (account_id, currency, balance, day, day_debited);

-- name: insert_sub_users
-- New sub-users.
insert into sub_user (merchant_id, user_id, ext_user_id, username, address_index, evm_address, tron_address, created_ms)
select $1::bigint, u.user_id, u.ext_user_id, u.ext_user_id, u.address_index, u.evm_address, u.tron_address, $7::bigint
  from unnest($2::bigint[], $3::text[], $4::int[], $5::bytea[], $6::bytea[])
       u (user_id, ext_user_id, address_index, evm_address, tron_address);

-- name: insert_wallet_addresses
-- Both addresses of new sub-users, for transfers that name an address.
insert into wallet_address (merchant_id, address, user_id)
select $1::bigint, u.* from unnest($2::bytea[], $3::bigint[]) u;

-- name: insert_issued_addresses
-- The same addresses in the platform-wide list, which prevents that an address is issued twice.
insert into issued_address (address, merchant_id) select u, $1::bigint from unnest($2::bytea[]) u;

-- name: insert_steps
-- Steps of orders. The table's constraints refuse an illegal one.
insert into withdrawal_step (merchant_id, order_id, step_no, from_status, to_status, at_ms, cause)
select $1::bigint, u.*
  from unnest($2::bigint[], $3::smallint[], $4::smallint[], $5::smallint[], $6::bigint[], $7::text[]) u;

-- name: insert_withdrawals
-- New orders.
insert into withdrawal (merchant_id, order_id, mc_order_id, amount, fee, rate_e8, chain, address, notify_url, status, step_no,
                        approved_ms, approved_by, deadline_ms, created_ms, finished_ms, tx_hash, second_limit_units)
select $1::bigint, u.*
  from unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::text[], $10::smallint[],
              $11::smallint[], $12::bigint[], $13::text[], $14::bigint[], $15::bigint[], $16::bigint[], $17::text[],
              $18::bigint[]) u;

-- name: update_withdrawals
-- One conditional update for each order: only from the step that the batch saw. Otherwise the batch fails as above.
with changed as (
    update withdrawal w
       set status = u.status, step_no = u.step_no, approved_ms = u.approved_ms, approved_by = u.approved_by,
           first_approved_by = u.first_approved_by, first_approved_ms = u.first_approved_ms,
           first_eligible_ms = u.first_eligible_ms, approved_eligible_ms = u.approved_eligible_ms,
           finished_ms = u.finished_ms, tx_hash = u.tx_hash
      from unnest($2::bigint[], $3::smallint[], $4::smallint[], $5::smallint[], $6::bigint[], $7::text[], $8::text[], $9::bigint[],
                  $10::text[], $11::bigint[], $12::bigint[], $13::bigint[])
           u (order_id, status, step_no, seen_step_no, approved_ms, approved_by, first_approved_by, finished_ms, tx_hash,
              first_approved_ms, first_eligible_ms, approved_eligible_ms)
     where w.merchant_id = $1::bigint and w.order_id = u.order_id and w.step_no = u.seen_step_no
    returning 1)
select 1 / (count(*) = $14::bigint)::int from changed;

-- name: insert_credits
-- Credits of deposits. The key refuses a second credit of one deposit.
-- The block must be the one that the transaction was first credited from, unless a person released the credit.
with first as (
    insert into credited_transaction (chain, tx_hash, block_hash)
    select distinct on (u.chain, u.tx_hash) u.chain, u.tx_hash, u.block_hash
      from unnest($2::text[], $3::text[], $9::text[]) u (chain, tx_hash, block_hash)
     where u.block_hash is not null
    on conflict (chain, tx_hash) do nothing)
insert into deposit_credit (merchant_id, chain, tx_hash, log_index, entry_id, currency, amount, rate_e8, block_hash, released_by)
select $1::bigint, u.*
  from unnest($2::text[], $3::text[], $4::int[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[], $9::text[], $10::text[]) u;

-- name: update_deposits
-- Marks the deposits as credited, only from the status that the batch saw. Otherwise the batch fails as above.
-- The status is a parameter: with a constant, PostgreSQL would rather read all pending deposits of every merchant than use the
-- key.
with changed as (
    update deposit d
       set status = 'credited', cause = null
      from unnest($2::text[], $3::text[], $4::int[]) u (chain, tx_hash, log_index)
     where d.merchant_id = $1::bigint and d.chain = u.chain and d.tx_hash = u.tx_hash and d.log_index = u.log_index
       and d.status = $5::text
    returning 1)
select 1 / (count(*) = $6::bigint)::int from changed;

-- name: insert_callbacks
-- The callbacks to send.
insert into callback (merchant_id, order_id, status, event_id, created_ms, event_type)
select $1::bigint, u.* from unnest($2::bigint[], $3::smallint[], $4::text[], $5::bigint[], $6::text[]) u;

-- name: advance_book
-- The book's new head, only from the head that the batch was judged on. Otherwise the batch fails as above.
with changed as (
    update book
       set id_range = $2::int, id_counter = $3::bigint, next_range = $4::int, entry_count = $5::bigint,
           head_hash = $6::bytea, withdrawn_day = $7::int, withdrawn_units = $8::bigint
     where merchant_id = $1::bigint and entry_count = $9::bigint
    returning 1)
select 1 / count(*) from changed;
