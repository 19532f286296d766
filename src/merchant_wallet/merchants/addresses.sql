-- Merchants' own deposit addresses. `addresses.py` runs these.

-- name: read_addresses
-- A merchant's own addresses.
select chain, address from merchant_address where merchant_id = %(merchant_id)s::bigint;

-- name: insert_addresses
-- Inserts both addresses of a merchant that has none yet. They never change afterwards.
insert into merchant_address (merchant_id, chain, address)
select %(merchant_id)s::bigint, u.* from unnest(%(chains)s::text[], %(addresses)s::bytea[]) u
on conflict (merchant_id, chain) do nothing
returning address;

-- name: insert_issued
-- The platform-wide list, which prevents that an address is issued twice.
insert into issued_address (address, merchant_id) select u, %(merchant_id)s::bigint from unnest(%(addresses)s::bytea[]) u;

-- name: list_without
-- Merchants that were created before merchants had addresses of their own.
select m.merchant_id, m.account_xpubs from merchant m
 where m.account_xpubs <> '{}' and not exists (select from merchant_address a where a.merchant_id = m.merchant_id)
 order by m.merchant_id;
