-- All addresses that are or were ours, in home. `own_addresses.py` runs these. A hot wallet is a `custody_address` from the moment
-- when it becomes one, and a cold wallet once it is counted.

-- name: list_wallets
-- Hot and cold wallets, also former ones.
select address from hot_wallet
union select address from cold_wallet
union select address from custody_address where purpose <> 'deposit';

-- name: find
-- What an address is or was to us.
select case when exists (select from hot_wallet where address = %(address)s::bytea) then 'hot wallet'
            when exists (select from custody_address where address = %(address)s::bytea and purpose = 'hot') then 'hot wallet'
            when exists (select from cold_wallet where address = %(address)s::bytea) then 'cold wallet'
            when exists (select from issued_address where address = %(address)s::bytea) then 'deposit address' end;

-- name: list_hot
-- The hot wallet of each chain, and those that were one before.
select chain, address, true from hot_wallet
union all
select c.chain, c.address, false from custody_address c
 where c.purpose = 'hot' and not exists (select from hot_wallet h where h.chain = c.chain and h.address = c.address)
 order by 1, 3 desc, 2;
