-- What files for accountants say besides the journal. Every page is read along an index. No query takes a lock.

-- name: find_sub_users
-- The names of some sub-users. Each is looked up by its key: in a young database, PostgreSQL 15 and 16 would read all
-- sub-users of the merchant and filter them.
select u.user_id, u.ext_user_id
  from unnest(%(user_ids)s::bigint[]) k (user_id)
 cross join lateral (select * from sub_user where merchant_id = %(merchant_id)s::bigint and user_id = k.user_id limit 1) u;

-- name: find_orders
-- Some orders, for entries that release their holds. Each is looked up by its key, as above.
select w.order_id, w.mc_order_id, w.chain::text as chain, w.tx_hash
  from unnest(%(order_ids)s::bigint[]) k (order_id)
 cross join lateral (select * from withdrawal
                      where merchant_id = %(merchant_id)s::bigint and order_id = k.order_id limit 1) w;

-- name: first_order_from
-- The first order at or after an id. Orders' times never go back, so a binary search finds a moment.
select order_id, created_ms from withdrawal where merchant_id = %(merchant_id)s::bigint and order_id >= %(from_id)s::bigint
 order by order_id limit 1;

-- name: page_orders
-- The next orders.
select order_id, mc_order_id, chain::text as chain, address, amount, fee, status, created_ms, approved_ms, first_approved_by, approved_by,
       finished_ms, tx_hash
  from withdrawal where merchant_id = %(merchant_id)s::bigint and order_id > %(after)s::bigint order by order_id limit %(page)s::int;

-- name: page_deposits
-- The next deposits of a period.
select d.chain::text as chain, d.tx_hash, d.log_index, d.seen_ms, d.final_ms, d.sender, d.address, d.amount, d.status, u.ext_user_id,
       c.entry_id
  from (select * from deposit
         where merchant_id = %(merchant_id)s::bigint and seen_ms < %(until_ms)s::bigint
           and (seen_ms, chain, tx_hash, log_index) > (%(seen_ms)s::bigint, %(chain)s::text, %(tx_hash)s::text, %(log_index)s::int)
         order by seen_ms, chain, tx_hash, log_index limit %(page)s::int) d
  left join lateral (select ext_user_id from sub_user where merchant_id = d.merchant_id and user_id = d.user_id limit 1) u on true
  left join lateral (
       select entry_id from deposit_credit
        where merchant_id = d.merchant_id and chain = d.chain and tx_hash = d.tx_hash and log_index = d.log_index limit 1) c on true
 order by d.seen_ms, d.chain, d.tx_hash, d.log_index;

-- name: page_callbacks
-- The next callbacks of one state and kind in a period.
select event_id, event_type, order_id, status, created_ms, state, attempt_no, delivered_ms
  from callback
 where merchant_id = %(merchant_id)s::bigint and state = %(state)s::text and event_type = %(event_type)s::text
   and created_ms < %(until_ms)s::bigint and (created_ms, order_id, status) > (%(created_ms)s::bigint, %(order_id)s::bigint, %(status)s::int)
 order by created_ms, order_id, status limit %(page)s::int;

-- name: first_audit_from
-- The first entry of the audit log at or after a number.
select audit_no, at_ms from audit_entry where audit_no >= %(from_id)s::bigint order by audit_no limit 1;

-- name: page_audit
-- The next entries of the audit log.
select audit_no, at_ms, actor, action, subject, merchant_id, before, after, source
  from audit_entry where audit_no > %(after)s::bigint order by audit_no limit %(page)s::int;

-- name: page_audit_of_merchant
-- The next entries about one merchant: all, or those of some actions.
select audit_no, at_ms, actor, action, subject, merchant_id, before, after, source
  from audit_entry
 where merchant_id = %(merchant_id)s::bigint and audit_no > %(after)s::bigint
   and (%(actions)s::text[] is null or action = any(%(actions)s::text[]))
 order by audit_no limit %(page)s::int;

-- name: page_merchants
-- The next merchants, or one, with their names. Home has all of them.
select merchant_id, name from merchant
 where merchant_id > %(after)s::bigint and (%(merchant_id)s::bigint is null or merchant_id = %(merchant_id)s::bigint)
 order by merchant_id limit %(page)s::int;
