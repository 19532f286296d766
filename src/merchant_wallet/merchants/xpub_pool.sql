-- The pool of accounts for new merchants' deposit addresses. `xpub_pool.py` runs these.

-- name: take_account
-- Gives the lowest free account to a merchant. An account that another transaction takes at this moment is skipped, so two
-- transactions never wait for each other.
update xpub_pool set merchant_id = %(merchant_id)s::bigint
 where account_no = (select account_no from xpub_pool where merchant_id is null
                      order by account_no limit 1 for update skip locked)
returning account_no, xpubs;

-- name: list_free
-- The free accounts. A merchant that a restored home does not know has its addresses from one of them.
select account_no, xpubs from xpub_pool where merchant_id is null order by account_no;

-- name: give_account
-- Gives a free account to the merchant that had it before.
update xpub_pool set merchant_id = %(merchant_id)s::bigint where account_no = %(account_no)s::int and merchant_id is null;

-- name: drop_accounts
-- Free accounts whose addresses a lost merchant had leave the pool.
with dropped as (
    delete from xpub_pool where account_no = any (%(account_nos)s::int[]) and merchant_id is null returning account_no, xpubs)
insert into lost_xpub (account_no, xpubs, lost_ms)
select account_no, xpubs, (extract(epoch from clock_timestamp()) * 1000)::bigint from dropped;

-- name: list_lost
-- The accounts that left the pool.
select account_no, xpubs from lost_xpub order by account_no;

-- name: give_lost_account
-- An account that left the pool comes back with the merchant that had it before.
with found as (delete from lost_xpub where account_no = %(account_no)s::int returning account_no, xpubs)
insert into xpub_pool (account_no, xpubs, merchant_id)
select account_no, xpubs, %(merchant_id)s::bigint from found;

-- name: insert_accounts
-- Adds accounts. A number that exists already keeps its keys.
insert into xpub_pool (account_no, xpubs)
select u.* from unnest(%(account_nos)s::int[], %(xpubs)s::jsonb[]) u on conflict (account_no) do nothing;

-- name: read_edges
-- The first and the last account, to check that they came from the current seed, and to know the next number.
(select account_no, xpubs from xpub_pool order by account_no limit 1)
union all
(select account_no, xpubs from xpub_pool order by account_no desc limit 1);

-- name: count_accounts
-- How many accounts there are, and how many are free. For operators, not for requests.
select count(*) as accounts, count(*) filter (where merchant_id is null) as free from xpub_pool;

-- name: find_merchants_without_account
-- Merchants whose addresses come from no account of the pool. They were opened in the sandbox, and the signer lacks their keys.
select m.merchant_id from merchant m
 where not exists (select from xpub_pool a where a.merchant_id = m.merchant_id)
 order by m.merchant_id limit 10;
