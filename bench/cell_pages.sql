-- Fills the book of one merchant with sets, for the console's pages. The hashes are not real: nothing verifies them.

-- fragment: base
-- The first id of the book's range.
(select id_range * 8589934592 from book where merchant_id = %(merchant_id)s::bigint);

-- name: add_accounts
-- The wallets of the sub-users, whose ids are those of the first entries.
insert into account (merchant_id, account_id, kind, currency, balance)
select %(merchant_id)s::bigint, {base} + n, 'subuser', 'USDT', 1000000 from generate_series(1, %(users)s::int) n;

-- name: add_sub_users
-- The sub-users, with addresses that nobody derived.
insert into sub_user (merchant_id, user_id, ext_user_id, username, address_index, evm_address, tron_address, created_ms)
select %(merchant_id)s::bigint, {base} + n, 'p' || n, 'Player ' || n, n,
       substr(sha256((%(merchant_id)s::bigint || 'e' || n)::bytea), 1, 20),
       substr(sha256((%(merchant_id)s::bigint || 't' || n)::bytea), 1, 20), %(first_ms)s::bigint + n
  from generate_series(1, %(users)s::int) n;

-- name: add_addresses
-- Their addresses.
insert into wallet_address (merchant_id, address, user_id)
select merchant_id, unnest(array[evm_address, tron_address]), user_id from sub_user where merchant_id = %(merchant_id)s::bigint;

-- name: add_entries
-- Registrations, then transfers over 90 days. Each hundredth entry is an order.
insert into entry (merchant_id, entry_id, kind, mc_order_id, at_ms, hash)
select %(merchant_id)s::bigint, {base} + n,
       case when n <= %(users)s::int then 'register' when n %% 100 = 0 then 'withdraw' when n %% 2 = 0 then 'merchant_to_user'
            else 'user_to_merchant' end,
       case when n > %(users)s::int then 'o' || n end, %(first_ms)s::bigint + n * %(step_ms)s::bigint,
       sha256((%(merchant_id)s::bigint || '.' || n)::bytea)
  from generate_series(1, %(entries)s::int) n;

-- name: add_postings
-- One posting for each entry with money.
insert into posting (merchant_id, entry_id, posting_no, source_id, target_id, currency, amount, source_balance, target_balance)
select %(merchant_id)s::bigint, {base} + n, 1,
       case when n %% 2 = 0 then 1 else {base} + 1 + n %% %(users)s::int end,
       case when n %% 100 = 0 then 3 when n %% 2 = 0 then {base} + 1 + n %% %(users)s::int else 1 end, 'USDT', 1000000, 0, 1000000
  from generate_series(%(users)s::int + 1, %(entries)s::int) n;

-- name: add_steps
-- The orders were asked for, and most of them were paid.
insert into withdrawal_step (merchant_id, order_id, step_no, from_status, to_status, at_ms, cause)
select merchant_id, entry_id, s.step_no, s.from_status, s.to_status, at_ms, s.cause
  from entry
 cross join (values (0, null::smallint, 0, 'made'), (1, 0, 1, 'taken'), (2, 1, 2, 'paid')) s (step_no, from_status, to_status, cause)
 where merchant_id = %(merchant_id)s::bigint and kind = 'withdraw' and (s.step_no = 0 or entry_id %% 8589934592 %% 2000 > 0)
 order by s.step_no;

-- name: add_orders
-- The orders. One of twenty waits for an approval, for a year.
insert into withdrawal (merchant_id, order_id, mc_order_id, amount, fee, rate_e8, chain, address, notify_url, status, step_no,
                        approved_ms, approved_by, deadline_ms, created_ms, finished_ms)
select e.merchant_id, e.entry_id, e.mc_order_id, 1000000 + e.entry_id %% 9973 * 10000, 10000, 0,
       case when e.entry_id %% 3 = 0 then 'ERC20' else 'TRC20' end, '0x' || substr(encode(sha256((e.entry_id %% 8589934592 / 500)::text::bytea), 'hex'), 1, 40), 'https://shop.example/x',
       case when p.is_paid then 2 else 0 end, case when p.is_paid then 2 else 0 end, case when p.is_paid then e.at_ms end,
       case when p.is_paid then 'limit' end, e.at_ms + 31536000000, e.at_ms, case when p.is_paid then e.at_ms + 60000 end
  from entry e cross join lateral (select e.entry_id %% 8589934592 %% 2000 > 0 as is_paid) p
 where e.merchant_id = %(merchant_id)s::bigint and e.kind = 'withdraw';

-- name: add_callbacks
-- The callbacks of the paid ones: delivered, and some that were given up.
insert into callback (merchant_id, order_id, status, event_id, created_ms, state, attempt_no, delivered_ms)
select merchant_id, order_id, 2, 'evt_' || order_id || '_2', created_ms,
       case when order_id %% 700 = 0 then 'dead_letter' else 'delivered' end, 1, created_ms + 50
  from withdrawal where merchant_id = %(merchant_id)s::bigint and status = 2;

-- name: add_attempts
-- Their attempts.
insert into callback_attempt (merchant_id, order_id, status, attempt_no, at_ms, http_status, latency_ms)
select merchant_id, order_id, status, 1, created_ms, case when state = 'delivered' then 200 else 500 end, 50
  from callback where merchant_id = %(merchant_id)s::bigint;

-- name: add_deposits
-- A deposit of each fourth sub-user, in the order of time.
insert into deposit (merchant_id, chain, tx_hash, log_index, block_number, block_hash, sender, address, user_id, amount, status,
                     seen_ms, final_ms, decided_by, decided_ms)
select merchant_id, 'TRC20', encode(sha256((merchant_id || 'd' || user_id)::bytea), 'hex'), 0, address_index, 'b', evm_address,
       tron_address, user_id, 5000000, 'dropped', created_ms, created_ms, 'bench', created_ms
  from sub_user where merchant_id = %(merchant_id)s::bigint and address_index %% 4 = 0;

-- name: write_book
-- The end of the journal.
update book set entry_count = %(entries)s::bigint, id_counter = %(entries)s::bigint,
       last_ms = %(first_ms)s::bigint + %(entries)s::bigint * %(step_ms)s::bigint, version = gen_random_uuid(),
       head_hash = sha256((%(merchant_id)s::bigint || '.' || %(entries)s::bigint)::bytea)
 where merchant_id = %(merchant_id)s::bigint;

-- name: write_cursor
-- All entries are in the figures.
insert into figure_cursor as f (merchant_id, entry_id, entries, sub_users, moved_ms)
select %(merchant_id)s::bigint, {base} + %(entries)s::int, %(entries)s::bigint, %(users)s::bigint, %(now_ms)s::bigint
on conflict (merchant_id) do update
   set entry_id = excluded.entry_id, entries = excluded.entries, sub_users = excluded.sub_users, moved_ms = excluded.moved_ms;

-- name: add_figures
-- The figures of the book, and its share of the platform's.
insert into daily_figure as d (merchant_id, day, kind, currency, entries, amount, fee)
select u.merchant_id, e.day, e.kind, 'USDT', e.entries, e.entries * 1000000, 0
  from (select (at_ms / 86400000)::int as day, kind, count(*) as entries from entry
         where merchant_id = %(merchant_id)s::bigint group by 1, 2) e
 cross join unnest(array[%(merchant_id)s::bigint, 0]) u (merchant_id)
on conflict (merchant_id, day, kind, currency) do update
   set entries = d.entries + excluded.entries, amount = d.amount + excluded.amount;

-- name: list_cursors
-- How far the figures of each book go.
select merchant_id, entry_id from figure_cursor;
