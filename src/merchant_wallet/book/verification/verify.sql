-- What verification reads. All pages of one book are read in one snapshot of its cell. Every statement names one merchant and
-- walks along a primary key, except the two that look for books. What home knows of the book is read by key, after the snapshot
-- has begun: home's rows are written before the book's that need them.

-- name: begin_snapshot
-- After this, all statements see the same moment of the book, however long they take and whatever commits meanwhile.
set transaction isolation level repeatable read, read only;

-- name: read_book
-- The book's row.
select id_range, id_counter, next_range, entry_count, head_hash, last_ms, withdrawn_day, withdrawn_units
  from book where merchant_id = %(merchant_id)s;

-- name: page_entries
-- The next entries of the journal.
select entry_id, kind, mc_order_id, at_ms, rate_e8, facts, hash from entry
 where merchant_id = %(merchant_id)s and entry_id > %(after)s order by entry_id limit %(page)s;

-- name: page_postings
-- The postings of a page of entries, and postings between them without an entry.
select entry_id, posting_no, source_id, target_id, currency, amount, source_balance, target_balance from posting
 where merchant_id = %(merchant_id)s and entry_id > %(after)s and entry_id <= %(upto)s order by entry_id, posting_no;

-- name: page_orders
-- The orders that a page of entries created. An order has the id of its entry.
select order_id, mc_order_id, amount, fee, rate_e8, chain, address, notify_url, status, step_no, approved_ms,
       deadline_ms, created_ms, finished_ms, notified_ms, tx_hash, second_limit_units, first_approved_by, approved_by,
       first_approved_ms, first_eligible_ms, approved_eligible_ms
  from withdrawal where merchant_id = %(merchant_id)s and order_id > %(after)s and order_id <= %(upto)s order by order_id;

-- name: page_steps
-- The steps of those orders.
select order_id, step_no, from_status, to_status, at_ms, cause from withdrawal_step
 where merchant_id = %(merchant_id)s and order_id > %(after)s and order_id <= %(upto)s order by order_id, step_no;

-- name: page_callbacks
-- The callbacks about those orders and deposits.
select order_id, status, event_id, created_ms, event_type from callback
 where merchant_id = %(merchant_id)s and order_id > %(after)s and order_id <= %(upto)s order by order_id, status;

-- name: page_sub_users
-- The sub-users that a page of entries registered. A sub-user has the id of its entry.
select user_id, ext_user_id, address_index, evm_address, tron_address from sub_user
 where merchant_id = %(merchant_id)s and user_id > %(after)s and user_id <= %(upto)s order by user_id;

-- name: page_credits
-- The credits that a page of entries made, each with its deposit and the owner of the deposit's address.
select c.entry_id, c.chain, c.tx_hash, c.log_index, c.currency::text, c.amount::bigint, c.rate_e8, d.amount, d.status,
       d.address, d.user_id, w.user_id, m.address is not null, c.block_hash, c.released_by, t.block_hash
  from deposit_credit c
  join deposit d on d.merchant_id = c.merchant_id and d.chain = c.chain and d.tx_hash = c.tx_hash and d.log_index = c.log_index
  left join credited_transaction t on t.chain = c.chain and t.tx_hash = c.tx_hash
  left join wallet_address w on w.merchant_id = d.merchant_id and w.address = d.address
  left join merchant_address m on m.merchant_id = d.merchant_id and m.address = d.address
 where c.merchant_id = %(merchant_id)s and c.entry_id > %(after)s and c.entry_id <= %(upto)s order by c.entry_id;

-- name: page_accounts
-- The next accounts, to compare with the sums of the postings.
select account_id, kind, currency, balance, day, day_debited from account
 where merchant_id = %(merchant_id)s and account_id > %(after)s order by account_id limit %(page)s;

-- name: find_stray_wallet
-- A sub-user that lacks one of its addresses in the book's list, or an address in that list that is not its sub-user's own. A
-- transfer to that address would go to the wrong account.
select s.user_id from sub_user s
 cross join lateral (values (s.evm_address), (s.tron_address)) a (address)
  left join wallet_address w on w.merchant_id = s.merchant_id and w.address = a.address and w.user_id = s.user_id
 where s.merchant_id = %(merchant_id)s and w.address is null
union all
select w.user_id from wallet_address w
  left join sub_user s on s.merchant_id = w.merchant_id and s.user_id = w.user_id and w.address in (s.evm_address, s.tron_address)
 where w.merchant_id = %(merchant_id)s and s.user_id is null
 limit 1;

-- name: page_addresses
-- The addresses of the next sub-users, to compare with those that the platform has issued.
select user_id, evm_address, tron_address from sub_user
 where merchant_id = %(merchant_id)s and user_id > %(after)s order by user_id limit %(page)s;

-- name: list_merchant_addresses
-- The merchant's own addresses.
select chain, address from merchant_address where merchant_id = %(merchant_id)s order by chain;

-- name: find_stray_deposit
-- Deposits and credits that do not fit: credited without a credit, a credit without that status, a credit without its deposit,
-- two credits of one transaction from two blocks or of one log.
select c.entry_id, d.chain, d.tx_hash, d.log_index, 'stands as ' || d.status || ' against its credit'
  from deposit d
  left join deposit_credit c on c.merchant_id = d.merchant_id and c.chain = d.chain and c.tx_hash = d.tx_hash
                            and c.log_index = d.log_index
 where d.merchant_id = %(merchant_id)s and (d.status = 'credited') <> (c.entry_id is not null)
union all
select c.entry_id, c.chain, c.tx_hash, c.log_index, 'has a credit and no row'
  from deposit_credit c
  left join deposit d on d.merchant_id = c.merchant_id and d.chain = c.chain and d.tx_hash = c.tx_hash
                     and d.log_index = c.log_index
 where c.merchant_id = %(merchant_id)s and d.merchant_id is null
union all
select c.entry_id, c.chain, c.tx_hash, c.log_index, 'is credited from another block than its transaction'
  from deposit_credit c
  join deposit_credit o on o.merchant_id = c.merchant_id and o.chain = c.chain and o.tx_hash = c.tx_hash
                       and o.block_hash <> c.block_hash
 where c.merchant_id = %(merchant_id)s
union all
select c.entry_id, c.chain, c.tx_hash, c.log_index, 'is the same log of its block as another deposit'
  from deposit_credit c
  join deposit d on d.merchant_id = c.merchant_id and d.chain = c.chain and d.tx_hash = c.tx_hash and d.log_index = c.log_index
  join deposit o on o.merchant_id = d.merchant_id and o.chain = d.chain and o.tx_hash = d.tx_hash
                and o.block_hash = d.block_hash and o.block_log_index = d.block_log_index and o.log_index <> d.log_index
                and o.final_ms is not null
 where c.merchant_id = %(merchant_id)s
 limit 1;

-- name: list_books
-- Every merchant that has an open book, or rows of a journal without a book. The query skips from one merchant to the next: to read
-- all rows would take as long as to verify them.
with recursive in_entries (merchant_id) as (
    select min(merchant_id) from entry
    union all
    select (select min(e.merchant_id) from entry e where e.merchant_id > i.merchant_id) from in_entries i where i.merchant_id is not null
), in_postings (merchant_id) as (
    select min(merchant_id) from posting
    union all
    select (select min(p.merchant_id) from posting p where p.merchant_id > i.merchant_id) from in_postings i where i.merchant_id is not null
)
select f.merchant_id
  from (select merchant_id from book
        union select merchant_id from in_entries where merchant_id is not null
        union select merchant_id from in_postings where merchant_id is not null) f
 where f.{open_books}
 order by f.merchant_id;
