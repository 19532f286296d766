-- Cold wallets and limits of chains. Keys begin with the chain.

-- name: list_wallets
-- All cold wallets, the current one of a chain first.
select chain, address, retired_ms is null, registered_ms, balance, balance_block, balance_ms
  from cold_wallet order by chain, retired_ms desc nulls first;

-- name: read_current
-- A chain's current cold wallet, locked until the end of the transaction.
select address from cold_wallet where chain = %(chain)s::text and retired_ms is null for update;

-- name: lock_hot
-- Lets no payout be reserved before this transaction ends.
select chain from hot_wallet order by chain for update;

-- name: has_open_payout
-- Whether a payout to an address may be signed or sent, on any chain.
select exists (select from payout_reservation
                where recipient = %(address)s::bytea and ended_no is null);

-- name: retire
-- The current cold wallet is retired. What it holds is still counted.
update cold_wallet set retired_ms = greatest(%(now_ms)s::bigint, registered_ms)
 where chain = %(chain)s::text and retired_ms is null;

-- name: register
-- A new current cold wallet.
insert into cold_wallet (chain, address, registered_ms) values (%(chain)s::text, %(address)s::bytea, %(now_ms)s::bigint);

-- name: restore
-- A retired cold wallet becomes current again.
update cold_wallet set retired_ms = null where chain = %(chain)s::text and address = %(address)s::bytea;

-- name: read_limits
-- A chain's limits.
select least, target, most from cold_limit where chain = %(chain)s::text;

-- name: list_limits
-- The limits of all chains.
select chain, least, target, most from cold_limit;

-- name: read_outside
-- Since when a chain's hot wallet is outside its limits.
select outside_ms from cold_limit where chain = %(chain)s::text;

-- name: note_outside
-- From now on the hot wallet is outside its limits, or within them again.
update cold_limit set outside_ms = case when %(is_outside)s::boolean then coalesce(outside_ms, %(now_ms)s::bigint) end
 where chain = %(chain)s::text and (outside_ms is not null) <> %(is_outside)s::boolean;

-- name: lock_limits
-- Proposals about a chain's cold money are decided one after another.
select pg_advisory_xact_lock(hashtext('cold ' || %(chain)s::text));

-- name: set_limits
-- New limits of a chain.
insert into cold_limit as l (chain, least, target, most, changed_ms)
values (%(chain)s::text, %(least)s::bigint, %(target)s::bigint, %(most)s::bigint, %(now_ms)s::bigint)
on conflict (chain) do update
   set least = excluded.least, target = excluded.target, most = excluded.most, changed_ms = excluded.changed_ms;
