-- Sweeps, what was signed for them, and the hot wallet's places that their top_up takes. Whoever needs both locks the
-- sweep's row first and the wallet's second; whatever changes a sweep names the version that was read.
-- The wallets and places are those of the payouts (migration 0003): one table and one lock for all who pay.

-- name: list_unswept
-- Addresses that have had more in final deposits than was ever swept, and no sweep under way; with where their keys are.
-- An address is ours on all chains, but only the family of chains that it was given out for finds its key.
select d.address, d.merchant_id, p.account_no, case when d.user_id is null then 1 else 0 end as branch,
       coalesce(s.address_index, 0) as address_index, last.cause,
       d.address = coalesce(case when %(is_evm)s::boolean then s.evm_address else s.tron_address end, m.address) as is_native
  from (select merchant_id, user_id, address, sum(amount) as arrived from deposit
         where chain = %(chain)s::text and status in ('pending', 'dust', 'credited') group by merchant_id, user_id, address) d
  join account_pool p on p.merchant_id = d.merchant_id
  left join merchant_address m on m.merchant_id = d.merchant_id and m.chain = %(key_name)s::text
  left join sub_user s on s.merchant_id = d.merchant_id and s.user_id = d.user_id
  left join (select address, sum(amount) filter (where step = 'done') as swept,
                    bool_or(ended_ms is null) as is_open, max(sweep_id) filter (where step <> 'dropped') as last_id
               from sweep where chain = %(chain)s::text group by address) w on w.address = d.address
  left join sweep last on last.chain = %(chain)s::text and last.sweep_id = w.last_id and last.step = 'failed'
 where d.arrived - coalesce(w.swept, 0) >= %(least_units)s::bigint and not coalesce(w.is_open, false)
 order by d.address;

-- name: count_open
-- How many are under way on a chain.
select count(*) from sweep where chain = %(chain)s::text and ended_ms is null;

-- name: open_sweep
-- A sweep that was decided on, unless the address has one or too many are under way.
insert into sweep (chain, address, merchant_id, account_no, branch, address_index, wallet, amount, coin_price, top_up,
                   top_up_fee_limit, token_fee_limit, actor, opened_ms, step)
select %(chain)s::text, %(address)s::bytea, %(merchant_id)s::bigint, %(account_no)s::int, %(branch)s::int,
       %(address_index)s::int, %(wallet)s::bytea, %(amount)s::bigint, %(coin_price)s::bigint, %(top_up)s::bigint,
       %(top_up_fee_limit)s::bigint, %(token_fee_limit)s::bigint, %(actor)s::text, %(now_ms)s::bigint,
       case when %(top_up)s::bigint > 0 then 'top_up' else 'token' end
 where (select count(*) from sweep where chain = %(chain)s::text and ended_ms is null) < %(at_once)s::bigint
   and not exists (select from rollback_sign)
on conflict do nothing
returning sweep_id;

-- name: list_open
-- What is under way on a chain, the oldest first. After a rollback of the database nothing is taken further.
select sweep_id, address, merchant_id, account_no, branch, address_index, wallet, amount, coin_price, top_up, top_up_fee_limit,
       token_fee_limit, step, version, top_up_nonce, token_nonce, opened_ms,
       -- No `exists`, which the planner may answer by reading all that was ever signed.
       coalesce((select true from sweep_signed g where g.chain = s.chain and g.sweep_id = s.sweep_id limit 1), false)
           as is_signed,
       obstacle,
       -- Twice, for the fee of sending it and the room above that.
       (select coalesce(2 * sum(o.top_up), 0) from sweep o
         where o.chain = s.chain and o.ended_ms is null and o.step = 'top_up' and o.sweep_id < s.sweep_id)::bigint as promised
  from sweep s
 where chain = %(chain)s::text and ended_ms is null and not exists (select from rollback_sign)
 order by sweep_id;

-- name: list_sweeps
-- Sweeps of a chain or of all, the newest first.
select chain, sweep_id, address, merchant_id, amount, coin_price, top_up, step, top_up_tx_hash, top_up_fee, token_tx_hash,
       token_fee, obstacle, cause, actor, opened_ms, ended_ms
  from sweep
 where (%(chain)s::text is null or chain = %(chain)s::text) and (ended_ms is null or not %(only_open)s::boolean)
 order by sweep_id desc limit %(limit)s::int;

-- name: read_signed
-- Everything that was signed for one errand of a sweep, the oldest first.
select raw, tx_hash, built_at_block from sweep_signed
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint and kind = %(kind)s::text order by attempt_no;

-- name: next_token_nonce
-- The place after all that the platform's sweeps have used of a deposit address.
select coalesce(max(token_nonce) + 1, 0) from sweep where chain = %(chain)s::text and address = %(address)s::bytea;

-- name: take_step
-- The right to write the next step, for whoever read the newest version; the row is locked until it is committed.
-- Nobody has it after a rollback.
update sweep set version = version + 1
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint and version = %(version)s::int and ended_ms is null
   and not exists (select from rollback_sign);

-- name: store_signed
-- The signed bytes, before anybody broadcasts them.
insert into sweep_signed (chain, sweep_id, kind, attempt_no, raw, tx_hash, built_at_block, signed_ms)
values (%(chain)s::text, %(sweep_id)s::bigint, %(kind)s::text, %(attempt_no)s::int, %(raw)s::bytea, %(tx_hash)s::text,
        %(built_at_block)s::bigint, %(now_ms)s::bigint);

-- name: set_nonces
-- The place of an errand among its sender's transactions, from its first signature on; a null leaves a place as it is.
update sweep set top_up_nonce = coalesce(top_up_nonce, %(top_up_nonce)s::bigint),
                 token_nonce = coalesce(token_nonce, %(token_nonce)s::bigint)
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint;

-- name: note_obstacle
-- What keeps a sweep waiting; null when nothing does.
update sweep set obstacle = %(obstacle)s::text
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint and version = %(version)s::int
   and ended_ms is null and obstacle is distinct from %(obstacle)s::text;

-- name: end_top_up
-- The coin has arrived for good: the token's turn.
update sweep set step = 'token', top_up_tx_hash = %(tx_hash)s::text, top_up_fee = %(fee)s::bigint, obstacle = null
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint;

-- name: end_token
-- The token has arrived for good.
update sweep set step = 'done', token_tx_hash = %(tx_hash)s::text, token_fee = %(fee)s::bigint, ended_ms = %(now_ms)s::bigint,
                 obstacle = null
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint;

-- name: fail_sweep
-- Proof that the errand under way moved nothing and never will; what it burnt all the same is kept.
update sweep set step = 'failed', cause = %(cause)s::text, ended_ms = %(now_ms)s::bigint, obstacle = null,
                 top_up_fee = case when step = 'top_up' then %(fee)s::bigint else top_up_fee end,
                 token_fee = case when step = 'token' then %(fee)s::bigint else token_fee end
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint;

-- name: drop_unsigned
-- Sweeps for which nothing was signed and that were decided on too long ago, at other prices: they are planned anew.
update sweep s set step = 'dropped', version = version + 1, cause = 'nothing was signed in time', ended_ms = %(now_ms)s::bigint,
                   obstacle = null
 where s.chain = %(chain)s::text and s.ended_ms is null and s.opened_ms <= %(before_ms)s::bigint
   and not exists (select from sweep_signed g where g.chain = s.chain and g.sweep_id = s.sweep_id);

-- name: read_wallet
-- A chain's hot wallet, and the place that was never given out yet.
select address, next_nonce, frozen_cause from hot_wallet where chain = %(chain)s::text;

-- name: open_wallet
-- Makes a wallet known where no payer has done so yet. One that is known is never replaced from here.
insert into hot_wallet (chain, address) values (%(chain)s::text, %(wallet)s::bytea) on conflict (chain) do nothing;

-- name: read_unused_nonce
-- The place after all that were ever given out of a wallet, which nobody has to prove.
select max(nonce) + 1 from wallet_nonce where chain = %(chain)s::text and wallet = %(wallet)s::bytea;

-- name: set_first_nonce
-- The first place to give out is the one that the chain named, but never one that was given out before.
update hot_wallet h
   set next_nonce = greatest(%(nonce)s::bigint, (
       select max(s.nonce) + 1 from wallet_nonce s where s.chain = h.chain and s.wallet = h.address))
 where h.chain = %(chain)s::text and h.address = %(wallet)s::bytea and h.next_nonce is null;

-- name: lock_wallet
-- The wallet's row, and nobody else gives out places before this transaction ends.
update hot_wallet set next_nonce = next_nonce
 where chain = %(chain)s::text and address = %(wallet)s::bytea
returning next_nonce;

-- name: find_halts
-- Why nothing new may leave the hot wallet.
select 'the wallet is frozen: ' || h.frozen_cause from hot_wallet h
 where h.chain = %(chain)s::text and h.frozen_ms is not null
union all
select s.actor || ' stopped payouts: ' || s.cause from payout_stop s where s.chain = %(chain)s::text
union all
select 'the database was rolled back: ' || r.cause from rollback_sign r;

-- name: take_free_nonce
-- The lowest place that an order has given back.
update wallet_nonce set purpose = 'top_up', since_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and wallet = %(wallet)s::bytea and nonce = (
       select f.nonce from wallet_nonce f
        where f.chain = %(chain)s::text and f.wallet = %(wallet)s::bytea and f.purpose = 'free'
        order by f.nonce limit 1)
   and purpose = 'free'
returning nonce;

-- name: take_next_nonce
-- The place after all that were ever given out.
with taken as (
    update hot_wallet set next_nonce = next_nonce + 1
     where chain = %(chain)s::text and address = %(wallet)s::bytea and next_nonce is not null
    returning chain, address, next_nonce - 1 as nonce)
insert into wallet_nonce (chain, wallet, nonce, purpose, since_ms)
select chain, address, nonce, 'top_up', %(now_ms)s::bigint from taken
returning nonce;

-- name: mark_for_cancel
-- Free places below one that top_up has taken: they are filled, or the top_up would wait for a payout that takes them.
update wallet_nonce f set purpose = 'cancel', since_ms = %(now_ms)s::bigint
 where f.chain = %(chain)s::text and f.wallet = %(wallet)s::bytea and f.purpose = 'free'
   and f.since_ms <= %(before_ms)s::bigint
   and exists (select from sweep s where s.chain = f.chain and s.wallet = f.wallet and s.ended_ms is null
                  and s.step = 'top_up' and s.top_up_nonce > f.nonce);

-- name: mark_cancelled
-- Fills below a place that the chain has taken are through.
update wallet_nonce set cancelled_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and wallet = %(wallet)s::bytea and purpose = 'cancel' and cancelled_ms is null
   and nonce < %(nonce)s::bigint;

-- name: freeze_wallet
-- Nothing more is signed by this wallet until an operator has looked. The first cause stays.
update hot_wallet set frozen_cause = %(cause)s::text, frozen_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and frozen_ms is null;

-- name: sum_sweeps
-- What reconciliation needs to know of a chain's sweeps: moved, under way, burnt and left at addresses as coin.
select coalesce(sum(amount) filter (where step = 'done'), 0)::bigint as moved_units,
       coalesce(sum(amount) filter (where ended_ms is null), 0)::bigint as open_units,
       coalesce(sum(coalesce(top_up_fee, 0) + coalesce(token_fee, 0)), 0)::numeric as burnt,
       coalesce(sum(top_up) filter (where top_up_tx_hash is not null), 0)::numeric as topped_up
  from sweep where chain = %(chain)s::text;
