-- The statements of a group: one transaction over many books. `drafts.py` runs those that read, `store.py` those that write.
-- Parameters are arrays, one for each column. `unnest` is called in the select list, since in FROM it costs more.
-- The statements that write come after `write_books` in the same transaction. Their first parameter is the group's id. They
-- write for the books that the claim has marked alone. The second parameter is the column of merchant ids.

-- fragment: cell_is_open
-- Whether the cell takes commands. `cell_id >= 0` lets PostgreSQL use the key. It is looked up once, not for each row.
exists (select from cell_state s where s.cell_id >= 0 and s.is_open)

-- fragment: head
-- The columns of a book's head. A book takes commands while it and its cell are open. Its clock is never before the end of a month
-- whose figures were made.
merchant_id, version, id_range, id_counter, next_range, entry_count, head_hash, greatest(last_ms, closed_ms) as last_ms,
settings_version, withdrawn_day, withdrawn_units, is_open and {cell_is_open}

-- name: read_books
-- The heads of books. Sent before all other reads: what changes after it moves the version, and then the claim fails.
select {head} from book where merchant_id = any($1::bigint[]);

-- name: lock_book
-- Takes one book's lock and reads its head. It is an update, because a transaction that begins with a write keeps its place
-- while a shard is moved.
update book set version = version where merchant_id = $1::bigint returning {head};

-- name: find_nonces
-- The nonces that were used before, on any day that is still kept.
select u.merchant_id, u.nonce
  from (select unnest($1::bigint[]) as merchant_id, unnest($2::text[]) as nonce) u
 cross join lateral (select 1 from nonce where merchant_id = u.merchant_id and nonce = u.nonce limit 1) n;

-- Looks each row up by the whole key of its index. `lateral` with a limit allows no other plan. A join that was planned while
-- the table was new could read all rows of a merchant.

-- name: read_accounts
-- The balances of the fixed accounts that the commands name.
select u.merchant_id, u.account_id, a.balance
  from (select unnest($1::bigint[]) as merchant_id, unnest($2::bigint[]) as account_id) u
 cross join lateral (select balance from account where merchant_id = u.merchant_id and account_id = u.account_id limit 1) a;

-- name: read_sub_users_by_ext
-- Sub-users by the merchant's own ids, with their balances.
select u.merchant_id, {sub_user}, a.balance
  from (select unnest($1::bigint[]) as merchant_id, unnest($2::text[]) as ext_user_id) u
 cross join lateral (select * from sub_user where merchant_id = u.merchant_id and ext_user_id = u.ext_user_id limit 1) s
 cross join lateral (select * from account where merchant_id = u.merchant_id and account_id = s.user_id limit 1) a;

-- name: read_sub_users_by_address
-- Sub-users by a wallet address of either network.
select u.merchant_id, {sub_user}, a.balance
  from (select unnest($1::bigint[]) as merchant_id, unnest($2::bytea[]) as address) u
 cross join lateral (select user_id from wallet_address where merchant_id = u.merchant_id and address = u.address limit 1) w
 cross join lateral (select * from sub_user where merchant_id = u.merchant_id and user_id = w.user_id limit 1) s
 cross join lateral (select * from account where merchant_id = u.merchant_id and account_id = s.user_id limit 1) a;

-- name: find_earlier_entries
-- Earlier entries with an order id and kind of the commands. Mostly there are none. An entry is in the journal or in the archive,
-- never in both: its row and its name change places in one transaction, and a statement sees one moment.
select u.merchant_id, e.entry_id, e.kind, e.mc_order_id, e.rate_e8, e.facts
  from (select unnest($1::bigint[]) as merchant_id, unnest($2::text[]) as mc_order_id, unnest($3::text[]) as kind) u
 cross join lateral (
       (select entry_id, kind, mc_order_id, rate_e8, facts from entry
         where merchant_id = u.merchant_id and mc_order_id = u.mc_order_id and kind = u.kind limit 1)
        union all
       (select entry_id, kind, mc_order_id, rate_e8, facts from archived_order
         where merchant_id = u.merchant_id and mc_order_id = u.mc_order_id and kind = u.kind limit 1)
        limit 1) e;

-- name: read_postings
-- The postings of those entries. Of an archived one those fields are left that its outcome needs. It is looked up by its name, since
-- it may have been archived after the entry was found.
select u.merchant_id, u.entry_id, p.source_id, p.target_id, p.currency, p.amount, p.source_balance, p.target_balance
  from (select unnest($1::bigint[]) as merchant_id, unnest($2::bigint[]) as entry_id, unnest($3::text[]) as mc_order_id,
               unnest($4::text[]) as kind) u
 cross join lateral (
       select posting_no::int, source_id, target_id, currency, amount::bigint, source_balance, target_balance from posting
        where merchant_id = u.merchant_id and entry_id = u.entry_id
        union all
       select n.posting_no, o.source_id, o.target_id, case n.posting_no when 1 then o.currency else o.second_currency end,
              case n.posting_no when 1 then o.amount else o.second_amount end, coalesce(o.source_balance, 0),
              coalesce(o.target_balance, 0)
         from (select * from archived_order
                where merchant_id = u.merchant_id and mc_order_id = u.mc_order_id and kind = u.kind limit 1) o
        cross join (values (1), (2)) n (posting_no)
        where n.posting_no = 1 or o.second_amount is not null) p
 order by u.merchant_id, u.entry_id, p.posting_no;

-- fragment: order
-- The columns of a withdrawal order.
order_id, mc_order_id, amount, fee, rate_e8, chain, address, notify_url, status, step_no, approved_ms, deadline_ms, created_ms,
finished_ms, notified_ms, tx_hash, second_limit_units, first_approved_by, approved_by, first_approved_ms, first_eligible_ms,
approved_eligible_ms

-- name: read_withdrawals
-- Orders by their own ids.
select u.merchant_id, {order}
  from (select unnest($1::bigint[]) as merchant_id, unnest($2::bigint[]) as id) u
 cross join lateral (select {order} from withdrawal where merchant_id = u.merchant_id and order_id = u.id limit 1) w;

-- name: read_withdrawals_by_name
-- Orders by the merchant's ids.
select u.merchant_id, {order}
  from (select unnest($1::bigint[]) as merchant_id, unnest($2::text[]) as name) u
 cross join lateral (select {order} from withdrawal where merchant_id = u.merchant_id and mc_order_id = u.name limit 1) w;

-- name: read_stops
-- A row without an order while evidence of a rollback is open, and a row for each of these orders that is frozen.
-- An acceptance freezes orders, with a new version of their books, before it deletes the evidence. So the claim fails if it came
-- between.
select null::bigint, null::bigint from rollback_evidence
union all
select u.merchant_id, u.order_id
  from (select unnest($1::bigint[]) as merchant_id, unnest($2::bigint[]) as order_id) u
 cross join lateral (
       select 1 from withdrawal where merchant_id = u.merchant_id and order_id = u.order_id and frozen_ms is not null limit 1) w;

-- name: read_deposits
-- Deposits by their keys, with their credit if any, whether the address is the merchant's own, and the block that the
-- transaction was first credited from.
select k.merchant_id, d.chain, d.tx_hash, d.log_index, d.address, d.amount, m.address is not null, d.status = 'pending',
       d.block_hash, d.decided_by, t.block_hash, c.entry_id, c.currency, c.amount, c.rate_e8
  from (select unnest($1::bigint[]) as merchant_id, unnest($2::text[]) as chain, unnest($3::text[]) as tx_hash,
               unnest($4::int[]) as log_index) k
  join deposit d on d.merchant_id = k.merchant_id and d.chain = k.chain and d.tx_hash = k.tx_hash and d.log_index = k.log_index
  left join deposit_credit c on c.merchant_id = k.merchant_id and c.chain = d.chain and c.tx_hash = d.tx_hash
                            and c.log_index = d.log_index
  left join credited_transaction t on t.chain = d.chain and t.tx_hash = d.tx_hash
  left join merchant_address m on m.merchant_id = k.merchant_id and m.address = d.address;

-- name: read_rates
-- The platform's rates (merchant 0) and the merchants' own, which override them for each direction. An apart cell has copies: no
-- rate is used if they were not compared with home within a minute of now ($2). The default cell's books read home's own.
select merchant_id, usdt_kfb_e8, usdt_kfb_paused, usdt_kfb_set_ms, usdt_kfb_max_age_ms,
       kfb_usdt_e8, kfb_usdt_paused, kfb_usdt_set_ms, kfb_usdt_max_age_ms
  from rate where merchant_id = any(array_append($1::bigint[], 0))
   and not exists (select from reference_state
                    where row_no = 1 and checked_ms not between $2::bigint - 60000 and $2::bigint + 60000)
 order by merchant_id;

-- name: write_books
-- Claims the books of a group and writes what most groups write: nonces, entries, postings, balances. As one statement they are sent,
-- started and ended once.
-- The claim writes the new heads of the books that are as the group was judged on, and gives them the group's id as their version. It
-- is the one precondition of a group. A book stays out if its version has moved, if another transaction holds its lock, or if one of
-- its names (nonces, order ids) was used before. Nobody waits, so nobody can wait in a circle. While the cell is closed all stay out.
-- Whatever adds a name or changes an account moves the version. So nothing of a claimed book changes between this statement's
-- snapshot and the lock.
-- `day` and `day_debited` change only where a sub-user was debited. If an account's row is missing, the division by zero fails the
-- group.
with claimed as (
update book b
   set version = $1::uuid, last_ms = c.last_ms, id_range = c.id_range, id_counter = c.id_counter,
       next_range = c.next_range, entry_count = c.entry_count, head_hash = c.head_hash, withdrawn_day = c.withdrawn_day,
       withdrawn_units = c.withdrawn_units
  from (select u.*
          from (select unnest($2::bigint[]) as merchant_id, unnest($3::uuid[]) as version, unnest($4::bigint[]) as last_ms,
                       unnest($5::int[]) as id_range, unnest($6::bigint[]) as id_counter, unnest($7::int[]) as next_range,
                       unnest($8::bigint[]) as entry_count, unnest($9::bytea[]) as head_hash,
                       unnest($10::int[]) as withdrawn_day, unnest($11::bigint[]) as withdrawn_units) u
         cross join lateral (select 1 from book o where o.merchant_id = u.merchant_id and o.version = u.version
                                limit 1 for no key update skip locked) o
         where u.merchant_id <> all (array(
               select n.merchant_id from (select unnest($12::bigint[]) as merchant_id, unnest($13::text[]) as nonce) n
                cross join lateral (select 1 from nonce where merchant_id = n.merchant_id and nonce = n.nonce limit 1) k
                union all
               select n.merchant_id
                 from (select unnest($15::bigint[]) as merchant_id, unnest($16::text[]) as name, unnest($17::text[]) as kind) n
                cross join lateral ((select 1 from entry where merchant_id = n.merchant_id and mc_order_id = n.name
                                        and kind = n.kind limit 1)
                                     union all
                                    (select 1 from archived_order where merchant_id = n.merchant_id and mc_order_id = n.name
                                        and kind = n.kind limit 1)
                                     limit 1) k
                union all
               select n.merchant_id from (select unnest($18::bigint[]) as merchant_id, unnest($19::text[]) as name) n
                cross join lateral (select 1 from withdrawal where merchant_id = n.merchant_id and mc_order_id = n.name limit 1) k))
           and {cell_is_open}) c
 where b.merchant_id = c.merchant_id
returning b.merchant_id
), nonces as (
insert into nonce (merchant_id, nonce, day, group_id)
select u.merchant_id, u.nonce, u.day, $1::uuid
  from (select unnest($12::bigint[]) as merchant_id, unnest($13::text[]) as nonce, unnest($14::int[]) as day) u
 where u.merchant_id = any (array(select merchant_id from claimed))
), entries as (
insert into entry (merchant_id, entry_id, kind, mc_order_id, at_ms, rate_e8, facts, hash)
select u.*
  from (select unnest($20::bigint[]) as merchant_id, unnest($21::bigint[]), unnest($22::text[]), unnest($23::text[]),
               unnest($24::bigint[]), unnest($25::bigint[]), unnest($26::text[]), unnest($27::bytea[])) u
 where u.merchant_id = any (array(select merchant_id from claimed))
), postings as (
insert into posting (merchant_id, entry_id, posting_no, source_id, target_id, currency, amount, source_balance, target_balance)
select u.*
  from (select unnest($28::bigint[]) as merchant_id, unnest($29::bigint[]), unnest($30::smallint[]), unnest($31::bigint[]),
               unnest($32::bigint[]), unnest($33::text[]), unnest($34::bigint[]), unnest($35::bigint[]), unnest($36::bigint[])) u
 where u.merchant_id = any (array(select merchant_id from claimed))
), touched as materialized (
select u.*
  from (select unnest($37::bigint[]) as merchant_id, unnest($38::bigint[]) as account_id, unnest($39::bigint[]) as balance,
               unnest($40::int[]) as day, unnest($41::bigint[]) as day_debited) u
 where u.merchant_id = any (array(select merchant_id from claimed))
), updated as (
update account a
   set balance = u.balance, day = coalesce(u.day, a.day), day_debited = coalesce(u.day_debited, a.day_debited)
  from touched u
 where a.merchant_id = u.merchant_id and a.account_id = u.account_id
returning 1
)
select merchant_id from claimed
 where (select 1 / ((select count(*) from updated) = (select count(*) from touched))::int) = 1;

-- fragment: claimed
-- Only rows of the books that the claim marked. They are looked up once, not for each row.
u.merchant_id = any (array(select merchant_id from book where merchant_id = any($2::bigint[]) and version = $1::uuid))

-- name: insert_accounts
-- The accounts of new sub-users.
insert into account (merchant_id, account_id, kind, currency, balance, day, day_debited)
select u.merchant_id, u.account_id, 'subuser', u.currency, u.balance, u.day, u.day_debited
  from (select unnest($2::bigint[]) as merchant_id, unnest($3::bigint[]) as account_id, unnest($4::text[]) as currency,
               unnest($5::bigint[]) as balance, unnest($6::int[]) as day, unnest($7::bigint[]) as day_debited) u
 where {claimed};

-- name: insert_sub_users
-- New sub-users.
insert into sub_user (merchant_id, user_id, ext_user_id, username, address_index, evm_address, tron_address, created_ms)
select u.merchant_id, u.user_id, u.ext_user_id, u.ext_user_id, u.address_index, u.evm_address, u.tron_address, u.created_ms
  from (select unnest($2::bigint[]) as merchant_id, unnest($3::bigint[]) as user_id, unnest($4::text[]) as ext_user_id,
               unnest($5::int[]) as address_index, unnest($6::bytea[]) as evm_address, unnest($7::bytea[]) as tron_address,
               unnest($8::bigint[]) as created_ms) u
 where {claimed};

-- name: insert_wallet_addresses
-- Both addresses of new sub-users, for transfers that name an address.
insert into wallet_address (merchant_id, address, user_id)
select u.* from (select unnest($2::bigint[]) as merchant_id, unnest($3::bytea[]), unnest($4::bigint[])) u
 where {claimed};

-- name: insert_steps
-- Steps of orders. The table's constraints refuse an illegal one.
insert into withdrawal_step (merchant_id, order_id, step_no, from_status, to_status, at_ms, cause)
select u.*
  from (select unnest($2::bigint[]) as merchant_id, unnest($3::bigint[]), unnest($4::smallint[]), unnest($5::smallint[]),
               unnest($6::smallint[]), unnest($7::bigint[]), unnest($8::text[])) u
 where {claimed};

-- name: insert_withdrawals
-- New orders.
insert into withdrawal (merchant_id, order_id, mc_order_id, amount, fee, rate_e8, chain, address, notify_url, status, step_no,
                        approved_ms, approved_by, deadline_ms, created_ms, finished_ms, tx_hash, second_limit_units)
select u.*
  from (select unnest($2::bigint[]) as merchant_id, unnest($3::bigint[]), unnest($4::text[]), unnest($5::bigint[]),
               unnest($6::bigint[]), unnest($7::bigint[]), unnest($8::text[]), unnest($9::text[]), unnest($10::text[]),
               unnest($11::smallint[]), unnest($12::smallint[]), unnest($13::bigint[]), unnest($14::text[]),
               unnest($15::bigint[]), unnest($16::bigint[]), unnest($17::bigint[]), unnest($18::text[]),
               unnest($19::bigint[])) u
 where {claimed};

-- name: update_withdrawals
-- One conditional update for each order: only from the step that the rules saw.
update withdrawal w
   set status = u.status, step_no = u.step_no, approved_ms = u.approved_ms, approved_by = u.approved_by,
       first_approved_by = u.first_approved_by, first_approved_ms = u.first_approved_ms,
       first_eligible_ms = u.first_eligible_ms, approved_eligible_ms = u.approved_eligible_ms,
       finished_ms = u.finished_ms, tx_hash = u.tx_hash
  from (select unnest($2::bigint[]) as merchant_id, unnest($3::bigint[]) as order_id, unnest($4::smallint[]) as status,
               unnest($5::smallint[]) as step_no, unnest($6::smallint[]) as seen_step_no, unnest($7::bigint[]) as approved_ms,
               unnest($8::text[]) as approved_by, unnest($9::text[]) as first_approved_by, unnest($10::bigint[]) as finished_ms,
               unnest($11::text[]) as tx_hash, unnest($12::bigint[]) as first_approved_ms,
               unnest($13::bigint[]) as first_eligible_ms, unnest($14::bigint[]) as approved_eligible_ms) u
 where {claimed}
   and w.merchant_id = u.merchant_id and w.order_id = u.order_id and w.step_no = u.seen_step_no;

-- name: check_withdrawals
-- Fails the group, as `write_books`, if an order has not the step that the rules decided.
select 1 / (count(*) = 0)::int
  from (select unnest($2::bigint[]) as merchant_id, unnest($3::bigint[]) as order_id, unnest($4::smallint[]) as status,
               unnest($5::smallint[]) as step_no) u
  left join withdrawal w on w.merchant_id = u.merchant_id and w.order_id = u.order_id
 where {claimed}
   and (w.status, w.step_no) is distinct from (u.status, u.step_no);

-- name: insert_credited_transactions
-- The block that each transaction was first credited from. A person may release a credit from another one.
insert into credited_transaction (chain, tx_hash, block_hash)
select distinct on (u.chain, u.tx_hash) u.chain, u.tx_hash, u.block_hash
  from (select unnest($2::bigint[]) as merchant_id, unnest($3::text[]) as chain, unnest($4::text[]) as tx_hash,
               unnest($5::text[]) as block_hash) u
 where {claimed} and u.block_hash is not null
on conflict do nothing;

-- name: insert_credits
-- Credits of deposits. The key refuses a second credit of one deposit.
-- The block must be the one that the transaction was first credited from, unless a person released the credit.
insert into deposit_credit (merchant_id, chain, tx_hash, log_index, entry_id, currency, amount, rate_e8, block_hash, released_by)
select u.*
  from (select unnest($2::bigint[]) as merchant_id, unnest($3::text[]), unnest($4::text[]), unnest($5::int[]),
               unnest($6::bigint[]), unnest($7::text[]), unnest($8::bigint[]), unnest($9::bigint[]), unnest($10::text[]),
               unnest($11::text[])) u
 where {claimed};

-- name: update_deposits
-- Marks the deposits as credited. If one has not the status that the rules saw, the division by zero fails the group.
update deposit d
   set status = case when d.status = $6::text then 'credited' else (1 / (d.status = $6::text)::int)::text end, cause = null
  from (select unnest($2::bigint[]) as merchant_id, unnest($3::text[]) as chain, unnest($4::text[]) as tx_hash,
               unnest($5::int[]) as log_index) u
 where {claimed}
   and d.merchant_id = u.merchant_id and d.chain = u.chain and d.tx_hash = u.tx_hash and d.log_index = u.log_index;

-- name: check_deposits
-- Fails the group, as `write_books`, if a deposit is missing.
select 1 / (count(*) = 0)::int
  from (select unnest($2::bigint[]) as merchant_id, unnest($3::text[]) as chain, unnest($4::text[]) as tx_hash,
               unnest($5::int[]) as log_index) u
  left join deposit d on d.merchant_id = u.merchant_id and d.chain = u.chain and d.tx_hash = u.tx_hash
                     and d.log_index = u.log_index
 where {claimed}
   and d.status is distinct from 'credited';

-- name: insert_callbacks
-- The callbacks to send.
insert into callback (merchant_id, order_id, status, event_id, created_ms, event_type)
select u.*
  from (select unnest($2::bigint[]) as merchant_id, unnest($3::bigint[]), unnest($4::smallint[]), unnest($5::text[]),
               unnest($6::bigint[]), unnest($7::text[])) u
 where {claimed};

-- name: outdate_books
-- Gives a group's books another version, so that the group can't be done any more. It takes the locks in the order of ids and
-- waits for each, so a group that still runs has ended afterwards.
update book b set version = $2::uuid
  from (select merchant_id from book where merchant_id = any($1::bigint[]) order by merchant_id for no key update) o
 where b.merchant_id = o.merchant_id;

-- name: find_committed
-- The books that a group has written. It is sent after `outdate_books`.
select u.merchant_id
  from (select unnest($2::bigint[]) as merchant_id, unnest($3::text[]) as nonce) u
 cross join lateral (
       select 1 from nonce where merchant_id = u.merchant_id and nonce = u.nonce and group_id = $1::uuid limit 1) n;
