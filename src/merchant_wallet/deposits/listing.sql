-- What people see of deposits. Nothing here takes a lock; lists go page by page along an index, newest first.

-- name: page_deposits
-- A merchant's deposits.
select d.merchant_id, d.chain, d.tx_hash, d.log_index, d.block_number, d.status, d.sender, d.address, d.user_id, s.ext_user_id,
       d.amount, d.seen_ms, d.final_ms, d.cause,
       case when d.status <> 'undone' then greatest(0, k.head_number - d.block_number + 1) end,
       c.entry_id, c.currency::text, c.amount::bigint, c.rate_e8
  from deposit d
  left join sub_user s on s.merchant_id = d.merchant_id and s.user_id = d.user_id
  left join deposit_credit c on c.merchant_id = d.merchant_id and c.chain = d.chain and c.tx_hash = d.tx_hash
                            and c.log_index = d.log_index
  left join chain_cursor k on k.chain = d.chain
 where d.merchant_id = %(merchant_id)s::bigint
   and (d.seen_ms, d.chain, d.tx_hash, d.log_index) < (%(seen_ms)s::bigint, %(chain)s::text, %(tx_hash)s::text, %(log_index)s::int)
   and (%(status)s::text is null or d.status = %(status)s::text)
 order by d.seen_ms desc, d.chain desc, d.tx_hash desc, d.log_index desc
 limit %(limit)s::int;

-- name: page_wallet_deposits
-- The deposits of one sub-user's wallet.
select d.merchant_id, d.chain, d.tx_hash, d.log_index, d.block_number, d.status, d.sender, d.address, d.user_id, s.ext_user_id,
       d.amount, d.seen_ms, d.final_ms, d.cause,
       case when d.status <> 'undone' then greatest(0, k.head_number - d.block_number + 1) end,
       c.entry_id, c.currency::text, c.amount::bigint, c.rate_e8
  from deposit d
  left join sub_user s on s.merchant_id = d.merchant_id and s.user_id = d.user_id
  left join deposit_credit c on c.merchant_id = d.merchant_id and c.chain = d.chain and c.tx_hash = d.tx_hash
                            and c.log_index = d.log_index
  left join chain_cursor k on k.chain = d.chain
 where d.merchant_id = %(merchant_id)s::bigint and d.user_id = %(user_id)s::bigint
   and (d.seen_ms, d.chain, d.tx_hash, d.log_index) < (%(seen_ms)s::bigint, %(chain)s::text, %(tx_hash)s::text, %(log_index)s::int)
   and (%(status)s::text is null or d.status = %(status)s::text)
 order by d.seen_ms desc, d.chain desc, d.tx_hash desc, d.log_index desc
 limit %(limit)s::int;

-- name: page_deposits_of_wallets
-- The newest deposits of many wallets, a few of each, in one question for all the pages that show them.
select d.merchant_id, d.chain, d.tx_hash, d.log_index, d.block_number, d.status, d.sender, d.address, d.user_id, s.ext_user_id,
       d.amount, d.seen_ms, d.final_ms, d.cause,
       case when d.status <> 'undone' then greatest(0, k.head_number - d.block_number + 1) end,
       null::bigint, null::text, null::bigint, null::bigint
  from unnest(%(merchant_ids)s::bigint[], %(user_ids)s::bigint[]) w (merchant_id, user_id)
 cross join lateral (
       select * from deposit x
        where x.merchant_id = w.merchant_id and x.user_id = w.user_id
        order by x.seen_ms desc, x.chain desc, x.tx_hash desc, x.log_index desc
        limit %(limit)s::int) d
  join sub_user s on s.merchant_id = d.merchant_id and s.user_id = d.user_id
  left join chain_cursor k on k.chain = d.chain
 where d.status not in ('credited', 'held', 'dropped')
 order by d.merchant_id, d.user_id, d.seen_ms desc, d.chain desc, d.tx_hash desc, d.log_index desc;

-- name: page_open_deposits
-- The deposits of all merchants that are not credited yet, in one standing.
select d.merchant_id, d.chain, d.tx_hash, d.log_index, d.block_number, d.status, d.sender, d.address, d.user_id, s.ext_user_id,
       d.amount, d.seen_ms, d.final_ms, d.cause,
       case when d.status <> 'undone' then greatest(0, k.head_number - d.block_number + 1) end,
       null::bigint, null::text, null::bigint, null::bigint
  from (select * from deposit where status = 'seen' and %(status)s::text = 'seen'
        union all
        select * from deposit where status = 'pending' and %(status)s::text = 'pending'
        union all
        select * from deposit where status = 'dust' and %(status)s::text = 'dust'
        union all
        select * from deposit where status = 'held' and %(status)s::text = 'held') d
  left join sub_user s on s.merchant_id = d.merchant_id and s.user_id = d.user_id
  left join chain_cursor k on k.chain = d.chain
 order by d.seen_ms desc, d.chain desc, d.tx_hash desc, d.log_index desc
 limit %(limit)s::int;

-- name: find_deposits
-- The deposits of one transaction, on whichever chain it is.
select d.merchant_id, d.chain, d.tx_hash, d.log_index, d.block_number, d.status, d.sender, d.address, d.user_id, s.ext_user_id,
       d.amount, d.seen_ms, d.final_ms, d.cause,
       case when d.status <> 'undone' then greatest(0, k.head_number - d.block_number + 1) end,
       c.entry_id, c.currency::text, c.amount::bigint, c.rate_e8
  from deposit d
  left join sub_user s on s.merchant_id = d.merchant_id and s.user_id = d.user_id
  left join deposit_credit c on c.merchant_id = d.merchant_id and c.chain = d.chain and c.tx_hash = d.tx_hash
                            and c.log_index = d.log_index
  left join chain_cursor k on k.chain = d.chain
 where d.chain = any (chain_codes()) and d.tx_hash = %(tx_hash)s::text
 order by d.chain, d.log_index;

-- name: sum_uncredited
-- What final blocks have brought and no book has been credited with yet.
select chain, sum(amount)::bigint
  from (select chain, amount from deposit where status = 'pending'
        union all
        select chain, amount from deposit where status = 'dust') held
 group by chain;

-- name: list_cursors
-- How far each chain was read.
select chain, final_number, head_number, alert, moved_ms from chain_cursor order by chain;
