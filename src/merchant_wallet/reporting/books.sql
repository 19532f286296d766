-- Single reads of books: accounts, entries, orders and fees. No query takes a lock. Every list reads page by page along an
-- index.

-- name: find_book
-- The merchant whose book has a range of ids.
select merchant_id from id_range where range_no = %(range_no)s;

-- name: show_book
-- The head of a book.
select entry_count, id_range, id_counter, head_hash, last_ms from book where merchant_id = %(merchant_id)s;

-- name: read_withdrawn
-- What a merchant has withdrawn on a day, as its daily limit counts it.
select withdrawn_units from book where merchant_id = %(merchant_id)s and withdrawn_day = %(day)s;

-- name: page_accounts
-- The book's accounts. The fixed ones come first, since their numbers are the smallest.
select account_id, kind, currency, balance from account
 where merchant_id = %(merchant_id)s and account_id > %(after)s order by account_id limit %(page)s;

-- name: read_account
-- One account: whether it exists, and its currency.
select account_id, kind, currency, balance from account where merchant_id = %(merchant_id)s and account_id = %(account_id)s;

-- name: read_entry
-- One entry.
select entry_id, kind, mc_order_id, at_ms, rate_e8, facts, hash from entry
 where merchant_id = %(merchant_id)s and entry_id = %(entry_id)s;

-- name: read_postings
-- The postings of one entry.
select source_id, target_id, currency, amount, source_balance, target_balance from posting
 where merchant_id = %(merchant_id)s and entry_id = %(entry_id)s order by posting_no;

-- name: page_withdrawals
-- A merchant's orders, newest first, all or those in one status.
select merchant_id, order_id, mc_order_id, amount, fee, rate_e8, chain, address, notify_url, status, step_no,
       approved_ms, deadline_ms, created_ms, finished_ms, notified_ms, tx_hash, second_limit_units, first_approved_by, approved_by,
       first_approved_ms, first_eligible_ms, approved_eligible_ms
  from withdrawal
 where merchant_id = %(merchant_id)s and order_id < %(before_id)s and (%(status)s::int is null or status = %(status)s::int)
 order by order_id desc limit %(page)s;

-- name: page_open_withdrawals
-- Every merchant's orders in one status that is not final, oldest first: what an operator must look at.
select merchant_id, order_id, mc_order_id, amount, fee, rate_e8, chain, address, notify_url, status, step_no,
       approved_ms, deadline_ms, created_ms, finished_ms, notified_ms, tx_hash, second_limit_units, first_approved_by, approved_by,
       first_approved_ms, first_eligible_ms, approved_eligible_ms
  from withdrawal
 where status in (0, 1, 3) and status = %(status)s and (created_ms, order_id) > (%(created_ms)s, %(order_id)s)
   and {open_books}
 order by created_ms, order_id limit %(page)s;

-- name: read_withdrawal
-- One order.
select merchant_id, order_id, mc_order_id, amount, fee, rate_e8, chain, address, notify_url, status, step_no,
       approved_ms, deadline_ms, created_ms, finished_ms, notified_ms, tx_hash, second_limit_units, first_approved_by, approved_by,
       first_approved_ms, first_eligible_ms, approved_eligible_ms
  from withdrawal where merchant_id = %(merchant_id)s and order_id = %(order_id)s;

-- name: read_steps
-- The steps of one order.
select order_id, step_no, from_status, to_status, at_ms, cause from withdrawal_step
 where merchant_id = %(merchant_id)s and order_id = %(order_id)s order by step_no;

-- name: list_fees
-- The platform's fees by merchant and currency: still in the book, and withdrawn from it. Postings may be archived, so what was
-- withdrawn is read from the figures. Entries that these do not contain yet are never archived.
select m.merchant_id, m.name, a.currency, a.balance,
       (coalesce((select sum(d.amount) from daily_figure d
                   where d.merchant_id = a.merchant_id and d.kind = 'fee_withdraw' and d.currency = a.currency), 0)
        + coalesce((select sum(p.amount) from posting p
                     where p.merchant_id = a.merchant_id and p.source_id = a.account_id
                       and p.entry_id > coalesce((select c.entry_id from figure_cursor c
                                                   where c.merchant_id = a.merchant_id), 0)), 0))::bigint
  from account a join merchant m on m.merchant_id = a.merchant_id
 where a.account_id = any(%(fees_ids)s) and a.{open_books} order by m.merchant_id, a.currency desc;
