-- What keeps payouts from going on, for the console. Each statement reads the few rows that stop something, and of those that
-- wait no more than are counted.

-- name: list_blockers
-- Every stop, every frozen wallet, all evidence of a rollback (which stops all chains), and how many orders of each chain are
-- frozen or wait for an obstacle to pass. An obstacle that only repeats a stop is left out: the stop itself is listed.
select 'stop' as kind, s.chain, s.actor, s.cause, s.since_ms, 0::bigint as orders from payout_stop s
union all
select 'wallet', h.chain, '', h.frozen_cause, h.frozen_ms, 0 from hot_wallet h where h.frozen_ms is not null
union all
select 'rollback', c.chain, '', r.cause, r.since_ms, 0 from rollback_evidence r cross join unnest(%(chains)s::text[]) c (chain)
union all
select 'frozen', p.chain, '', (array_agg(p.frozen_cause order by p.frozen_ms))[1], min(p.frozen_ms), count(*)
  from (select chain, frozen_cause, frozen_ms from payout
         where frozen_ms is not null order by frozen_ms limit %(most)s::int) p
 group by p.chain
union all
select p.obstacle_kind, p.chain, '', (array_agg(p.obstacle_cause order by p.obstacle_ms))[1], min(p.obstacle_ms), count(*)
  from (select chain, phase, obstacle_kind, obstacle_cause, obstacle_ms from payout
         where obstacle_ms is not null order by obstacle_ms limit %(most)s::int) p
 where p.phase <> 'closed' and p.obstacle_kind <> 'stopped'
 group by p.chain, p.obstacle_kind
 order by 5, 2, 1, 3;

-- name: list_open_orders
-- A merchant's open orders, up to a bound of each status and chain.
select w.order_id, w.chain, w.status
  from unnest(array[0, 1, 3]) k (status) cross join unnest(chain_codes()) c (chain)
 cross join lateral (
       select * from withdrawal w
        where w.merchant_id = %(merchant_id)s::bigint and w.status = k.status and w.chain = c.chain
        order by w.created_ms limit %(most)s::int) w;

-- name: list_blockers_of_merchant
-- The same as far as it concerns one merchant's open orders: the stops and frozen wallets of the chains of those that are not
-- signed yet, the evidence, and what holds these orders themselves.
select 'stop' as kind, s.chain, s.actor, s.cause, s.since_ms, 0::bigint as orders from payout_stop s
 where s.chain = any(%(unpaid_chains)s::text[])
union all
select 'wallet', h.chain, '', h.frozen_cause, h.frozen_ms, 0 from hot_wallet h
 where h.frozen_ms is not null and h.chain = any(%(unpaid_chains)s::text[])
union all
select 'rollback', c.chain, '', r.cause, r.since_ms, 0
  from rollback_evidence r cross join unnest(%(open_chains)s::text[]) c (chain)
union all
select case when p.frozen_ms is not null then 'frozen' else p.obstacle_kind end, p.chain, '',
       min(coalesce(p.frozen_cause, p.obstacle_cause)), min(coalesce(p.frozen_ms, p.obstacle_ms)), count(*)
  from unnest(%(order_ids)s::bigint[]) o (order_id)
  join payout p on p.merchant_id = %(merchant_id)s::bigint and p.order_id = o.order_id
 where p.frozen_ms is not null or (p.obstacle_ms is not null and p.obstacle_kind <> 'stopped')
 group by 1, p.chain
 order by 5, 2, 1, 3;

-- name: count_queued
-- The approved orders of these chains that no payer has begun, up to a bound.
select c.chain, count(w.order_id) as orders, coalesce(sum(w.amount), 0) as amount_units
  from unnest(%(chains)s::text[]) c (chain)
  left join lateral (
       select w.order_id, w.amount from withdrawal w
        where w.status = 0 and w.chain = c.chain and w.approved_ms is not null
          and w.{open_books}
        order by w.created_ms limit %(most)s::int) w on true
 group by c.chain order by c.chain;
