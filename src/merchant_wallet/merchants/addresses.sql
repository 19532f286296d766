-- Merchants' own deposit addresses, and the platform's list of all addresses. `addresses.py` runs these.

-- name: read_addresses
-- A merchant's own addresses.
select chain, address from merchant_address where merchant_id = %(merchant_id)s::bigint;

-- name: insert_addresses
-- Inserts both addresses of a merchant that has none yet. They never change afterwards.
insert into merchant_address (merchant_id, chain, address)
select %(merchant_id)s::bigint, u.* from unnest(%(chains)s::text[], %(addresses)s::bytea[]) u
on conflict (merchant_id, chain) do nothing;

-- name: insert_issued
-- The platform-wide list, which prevents that an address is issued twice.
insert into issued_address (address, merchant_id) select u, %(merchant_id)s::bigint from unnest(%(addresses)s::bytea[]) u;

-- name: insert_own
-- The same for a merchant's own addresses. They may be in the list already, since they are the same every time.
insert into issued_address (address, merchant_id) select u, %(merchant_id)s::bigint from unnest(%(addresses)s::bytea[]) u
on conflict (address) do nothing;

-- name: count_own
-- How many of these addresses were issued to this merchant.
select count(*) from issued_address where address = any(%(addresses)s::bytea[]) and merchant_id = %(merchant_id)s::bigint;

-- name: list_without
-- Books that were opened before merchants had addresses of their own.
select b.merchant_id from book b
 where b.is_open and not exists (select from merchant_address a where a.merchant_id = b.merchant_id)
 order by b.merchant_id;

-- name: read_xpubs
-- The extended public keys of these merchants. Some of the oldest have none.
select merchant_id, account_xpubs from merchant
 where merchant_id = any(%(merchant_ids)s::bigint[]) and account_xpubs <> '{}' order by merchant_id;
