-- The pool of accounts that new merchants' deposit addresses come from. `pool.py` runs these.

-- name: take_account
-- The lowest account that nobody has becomes a merchant's. One that another transaction is taking at this moment is
-- passed by, so that two openings at once never wait for one another.
update account_pool set merchant_id = %(merchant_id)s::bigint
 where account_no = (select account_no from account_pool where merchant_id is null
                      order by account_no limit 1 for update skip locked)
returning account_no, xpubs;

-- name: insert_accounts
-- Further accounts; a number that is there already stays as it is.
insert into account_pool (account_no, xpubs)
select u.* from unnest(%(account_nos)s::int[], %(xpubs)s::jsonb[]) u on conflict (account_no) do nothing;

-- name: read_edges
-- The first and the last account, to see that they came from the seed at hand and where to go on.
(select account_no, xpubs from account_pool order by account_no limit 1)
union all
(select account_no, xpubs from account_pool order by account_no desc limit 1);

-- name: count_accounts
-- How many accounts there are, and how many of them nobody has; for an operator, not for requests.
select count(*) as accounts, count(*) filter (where merchant_id is null) as free from account_pool;

-- name: read_account_no
-- The account that a merchant took; whoever sweeps its deposit addresses names their keys by it.
select account_no from account_pool where merchant_id = %(merchant_id)s::bigint;

-- name: find_strangers
-- Merchants whose addresses come from no account of the pool: opened in the sandbox, whose keys the signer has not.
select m.merchant_id from merchant m
 where not exists (select from account_pool a where a.merchant_id = m.merchant_id)
 order by m.merchant_id limit 10;
