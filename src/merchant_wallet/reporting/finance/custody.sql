-- What the platform held on its chains, and what the chains took as fees.

-- name: list_held
-- The last comparison of each chain and day that could be made.
select distinct on (chain, (at_ms / 86400000)) chain::text as chain, (at_ms / 86400000)::int as day, at_ms, chain_units,
       explanation->>'hotWallets' as hot, explanation->>'unswept' as unswept, explanation->>'coldWallets' as cold,
       explanation->'underWay'->>'amount' as under_way, explanation->'seen'->>'amount' as seen, is_sound
  from reconciliation
 where cause is null and at_ms >= %(since_ms)s::bigint and at_ms < %(until_ms)s::bigint
 order by chain, (at_ms / 86400000), at_ms desc;

-- name: list_last
-- The last comparison of each chain that could be made.
select c.chain, r.*
  from unnest(%(chains)s::text[]) c (chain)
 cross join lateral (
       select (at_ms / 86400000)::int as day, at_ms, chain_units, explanation->>'hotWallets' as hot,
              explanation->>'unswept' as unswept, explanation->>'coldWallets' as cold,
              explanation->'underWay'->>'amount' as under_way, explanation->'seen'->>'amount' as seen, is_sound
         from reconciliation where reconciliation.chain = c.chain and cause is null
        order by reconciliation_no desc limit 1) r;

-- name: sum_sweep_fees
-- The fees of sweeps that ended in a period, and what top-ups gave to deposit addresses, in the chain's coin.
select chain::text as chain, count(*) filter (where token_fee is not null) as transfers,
       coalesce(sum(token_fee), 0)::numeric as token_fees, count(*) filter (where top_up_fee is not null) as top_ups,
       coalesce(sum(top_up_fee), 0)::numeric as top_up_fees,
       coalesce(sum(top_up) filter (where top_up_tx_hash is not null), 0)::numeric as given
  from sweep where ended_ms >= %(since_ms)s::bigint and ended_ms < %(until_ms)s::bigint
 group by chain order by chain;

-- name: sum_network_fees
-- The fees of payouts, cancelled nonces and cold transfers whose transactions were signed in a period.
select chain::text as chain, purpose, count(*) as transactions, sum(fee) as fees from network_fee
 where at_ms >= %(since_ms)s::bigint and at_ms < %(until_ms)s::bigint
 group by chain, purpose order by chain, purpose;
