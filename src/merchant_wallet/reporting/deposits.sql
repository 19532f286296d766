-- Lists of deposits, and home's rows about them. A query reads the next `stride` rows of an index by status, wallet or address, and applies the other
-- filters to those rows. If fewer rows than a page remain, it also returns the last row it read (`is_edge`).

-- fragment: own_columns
-- The deposit's own columns. `d` is the deposit.
d.merchant_id, d.chain, d.tx_hash, d.log_index, d.block_number, d.status, d.sender, d.address,
       d.user_id, d.amount as amount_units, d.seen_ms, d.final_ms, d.cause;

-- fragment: columns
-- The columns of a list. The other tables are in `joins`.
{own_columns}, m.name as merchant_name, u.ext_user_id, c.entry_id, c.currency::text as currency, c.amount::bigint as credited_units, c.rate_e8;

-- fragment: joins
-- The deposit's merchant, sub-user and credit.
join merchant m on m.merchant_id = d.merchant_id
  left join sub_user u on u.merchant_id = d.merchant_id and u.user_id = d.user_id
  left join deposit_credit c on c.merchant_id = d.merchant_id and c.chain = d.chain and c.tx_hash = d.tx_hash
        and c.log_index = d.log_index;

-- fragment: next_by_moment
-- The condition and order for the next deposits of an index by time.
(d.seen_ms, d.chain, d.tx_hash, d.log_index) < (%(key_0)s::bigint, %(key_1)s::text, %(key_2)s::text, %(key_3)s::int)
              and d.seen_ms >= %(from_ms)s::bigint and d.seen_ms < %(to_ms)s::bigint
            order by d.seen_ms desc, d.chain desc, d.tx_hash desc, d.log_index desc limit %(stride)s::int;

-- fragment: edge_and_rows
-- The rows of a page, newest first, and the last row that was read.
edge as (
    select s.* from strip s
     where (select count(*) from strip) >= %(stride)s::int and (select count(*) from found) < %(page)s::int
     order by s.seen_ms asc, s.chain asc, s.tx_hash asc, s.log_index asc limit 1)
select {columns}, d.is_edge
  from (select f.*, false as is_edge from found f union all select e.*, true from edge e) d
  {joins}
 order by d.is_edge, d.seen_ms desc, d.chain desc, d.tx_hash desc, d.log_index desc;

-- fragment: all_rows
-- Keeps every deposit.
found as (
    select s.* from strip s
     order by s.seen_ms desc, s.chain desc, s.tx_hash desc, s.log_index desc limit %(page)s::int),
{edge_and_rows};

-- fragment: filter_by_status
-- Keeps the deposits of the wanted chains and statuses.
found as (
    select s.* from strip s
     where s.chain = any(%(chains)s::text[]) and s.status = any(%(statuses)s::text[])
     order by s.seen_ms desc, s.chain desc, s.tx_hash desc, s.log_index desc limit %(page)s::int),
{edge_and_rows};

-- name: begin_snapshot
-- After this, all pages of a list show the deposits of one moment.
set transaction isolation level repeatable read, read only;

-- name: page_by_moment
-- All merchants' deposits, the newest first.
with strip as materialized (
    select d.* from unnest(%(statuses)s::text[]) k (status) cross join unnest(%(chains)s::text[]) c (chain)
     cross join lateral (
           select * from deposit d
            where d.status = k.status and d.chain = c.chain and d.{open_books}
              and {next_by_moment}) d
     order by d.seen_ms desc, d.chain desc, d.tx_hash desc, d.log_index desc limit %(stride)s::int),
{all_rows};

-- name: page_of_merchant_by_moment
-- One merchant's deposits, the newest first.
with strip as materialized (
    select d.* from unnest(%(statuses)s::text[]) k (status) cross join unnest(%(chains)s::text[]) c (chain)
     cross join lateral (
           select * from deposit d
            where d.merchant_id = %(merchant_id)s::bigint and d.status = k.status and d.chain = c.chain
              and {next_by_moment}) d
     order by d.seen_ms desc, d.chain desc, d.tx_hash desc, d.log_index desc limit %(stride)s::int),
{all_rows};

-- name: page_by_address
-- Deposits to one address of a given merchant, newest first.
with strip as materialized (
    select * from deposit d
     where d.merchant_id = %(merchant_id)s::bigint and d.address = %(address)s::bytea
       and {next_by_moment}),
{filter_by_status};

-- name: page_of_user
-- The deposits of one sub-user's wallet, the newest first.
with strip as materialized (
    select * from deposit d
     where d.merchant_id = %(merchant_id)s::bigint and d.user_id = %(user_id)s::bigint
       and {next_by_moment}),
{filter_by_status};

-- name: list_uncredited
-- The newest uncredited deposits of many wallets, a few for each. It is one query for all open wallet pages, so it reads
-- nothing about merchants, sub-users and credits.
select {own_columns}
  from unnest(%(merchant_ids)s::bigint[], %(user_ids)s::bigint[]) w (merchant_id, user_id)
 cross join lateral (
       select * from deposit x
        where x.merchant_id = w.merchant_id and x.user_id = w.user_id
        order by x.seen_ms desc, x.chain desc, x.tx_hash desc, x.log_index desc
        limit %(limit)s::int) d
 where d.status not in ('credited', 'dropped')
 order by d.merchant_id, d.user_id, d.seen_ms desc, d.chain desc, d.tx_hash desc, d.log_index desc;

-- name: find_by_transaction
-- The deposits of one transaction, on any chain.
select {columns}
  from deposit d
  {joins}
 where d.chain = any(%(chains)s::text[]) and d.tx_hash = %(tx_hash)s::text
   and (d.merchant_id = %(merchant_id)s::bigint or (%(merchant_id)s::bigint is null and d.{open_books}))
 order by d.chain, d.log_index limit %(limit)s::int;

-- name: find_owner
-- The merchant that an address belongs to: a sub-user's address or the merchant's own.
select merchant_id from issued_address where address = %(address)s::bytea;

-- name: find_owners
-- The merchants that some addresses belong to.
select address, merchant_id from issued_address where address = any(%(addresses)s::bytea[]);

-- name: sum_uncredited
-- Final deposits that no book has yet, by chain.
select chain, sum(amount)::bigint as units
  from (select chain, amount from deposit where status = 'pending' and {open_books}
        union all
        select chain, amount from deposit where status = 'dust' and {open_books}) held
 group by chain;

-- name: list_cursors
-- How far each chain was read.
select chain, final_number, head_number, alert, moved_ms from chain_cursor order by chain;
