-- Sweeps and their signed bytes. To prevent deadlocks the sweep's row is locked before the wallet's. Every change of a sweep
-- names the version that was read.

-- name: sum_arrived
-- What came to each address of a cell in final deposits, with the path of its key below its merchant's account. An address is
-- ours on all chains, but its key is found only in the family of chains that it was issued for.
select d.address, d.merchant_id, case when d.user_id is null then 1 else 0 end as branch,
       coalesce(s.address_index, 0) as address_index,
       d.address = coalesce(case when %(is_evm)s::boolean then s.evm_address else s.tron_address end, m.address) as is_native,
       d.arrived
  from (select merchant_id, user_id, address, sum(amount)::bigint as arrived from deposit
         where chain = %(chain)s::text and status in ('pending', 'dust', 'credited')
           and {open_books}
         group by merchant_id, user_id, address
        having sum(amount) >= %(min_units)s::bigint) d
  left join merchant_address m on m.merchant_id = d.merchant_id and m.chain = %(key_name)s::text
  left join sub_user s on s.merchant_id = d.merchant_id and s.user_id = d.user_id;

-- name: read_swept
-- Of these addresses, in their order: the account of their merchant, what was swept, whether a sweep is open, and the cause if
-- the last sweep failed.
select p.account_no, coalesce(w.swept, 0), coalesce(w.is_open, false), l.cause
  from unnest(%(merchant_ids)s::bigint[], %(addresses)s::bytea[]) with ordinality u (merchant_id, address, place)
  left join xpub_pool p on p.merchant_id = u.merchant_id
  left join lateral (
       select sum(amount) filter (where step = 'done')::bigint as swept, bool_or(ended_ms is null) as is_open,
              max(sweep_id) filter (where step <> 'dropped' and rescue_no is null) as last_id
         from sweep where chain = %(chain)s::text and address = u.address) w on true
  left join sweep l on l.chain = %(chain)s::text and l.sweep_id = w.last_id and l.step = 'failed'
 order by u.place;

-- name: count_open
-- The number of open sweeps of a chain.
select count(*) from sweep where chain = %(chain)s::text and ended_ms is null;

-- name: open_sweep
-- A new sweep, unless the address has an open one or too many are open.
insert into sweep (chain, address, merchant_id, account_no, branch, address_index, wallet, amount, coin_price, top_up,
                   top_up_fee_limit, token_fee_limit, budget, actor, opened_ms, step)
select %(chain)s::text, %(address)s::bytea, %(merchant_id)s::bigint, %(account_no)s::int, %(branch)s::int,
       %(address_index)s::int, %(wallet)s::bytea, %(amount)s::bigint, %(coin_price)s::bigint, %(top_up)s::bigint,
       %(top_up_fee_limit)s::bigint, %(token_fee_limit)s::bigint, %(budget)s::bigint, %(actor)s::text, %(now_ms)s::bigint,
       case when %(top_up)s::bigint > 0 then 'top_up' else 'token' end
 where (select count(*) from sweep where chain = %(chain)s::text and ended_ms is null) < %(max_concurrent)s::bigint
   and not exists (select from rollback_evidence)
on conflict do nothing
returning sweep_id;

-- name: continue_sweep
-- The successor of a sweep that was just ended, with more coin and other limits.
insert into sweep (chain, address, merchant_id, account_no, branch, address_index, wallet, amount, coin_price, top_up,
                   top_up_fee_limit, token_fee_limit, budget, actor, opened_ms, step, continues, rescue_no, rescued)
select chain, address, merchant_id, account_no, branch, address_index, wallet, amount, coin_price, %(top_up)s::bigint,
       %(top_up_fee_limit)s::bigint, %(token_fee_limit)s::bigint, %(budget)s::bigint, actor, %(now_ms)s::bigint,
       case when %(top_up)s::bigint > 0 then 'top_up' when rescue_no is null then 'token' else 'rescue' end, sweep_id, rescue_no,
       rescued
  from sweep where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint
returning sweep_id;

-- name: list_open
-- The open sweeps of a chain, oldest first. After a rollback of the database none is advanced.
select s.sweep_id, s.address, s.merchant_id, s.account_no, s.branch, s.address_index, r.contract, r.recipient, s.rescued, s.wallet,
       amount, coin_price, top_up, top_up_fee_limit, token_fee_limit, step, version, top_up_nonce, token_nonce, s.opened_ms,
       -- Something was signed for it, it is a successor, or two people decided it.
       version > 0 or continues is not null or s.rescue_no is not null as is_begun,
       -- A top-up whose fee no node knew counts with the most that it may have burnt.
       s.obstacle, stalled_ms, budget - coalesce(top_up_fee, top_up_fee_limit) as budget_left,
       -- Doubled: for the fee of sending it and the room above that.
       (select coalesce(2 * sum(o.top_up), 0) from sweep o
         where o.chain = s.chain and o.ended_ms is null and o.step = 'top_up' and o.sweep_id < s.sweep_id)::bigint as reserved
  from sweep s left join rescue r on r.rescue_no = s.rescue_no
 where s.chain = %(chain)s::text and s.ended_ms is null and not exists (select from rollback_evidence)
 order by s.sweep_id;

-- fragment: shown
-- A sweep for an operator.
chain, sweep_id, address, merchant_id, amount, coin_price, top_up, step, top_up_tx_hash, top_up_fee, token_tx_hash,
       token_fee, obstacle, cause, actor, opened_ms, ended_ms, continues, stalled_ms

-- name: list_sweeps
-- Sweeps of one chain or all, newest first. One that carries a rescue out is shown with its rescue, or if it is asked for.
select {shown}
  from sweep
 where (%(chain)s::text is null or chain = %(chain)s::text) and (ended_ms is null or not %(only_open)s::boolean)
   and case when %(sweep_id)s::bigint is null then rescue_no is null else sweep_id = %(sweep_id)s::bigint end
 order by sweep_id desc limit %(limit)s::int;

-- name: list_failed
-- Sweeps of these chains that failed, oldest first, up to a bound of each. One that a person ended was looked at. What failed at its
-- address before is settled by that, and by a sweep that succeeded later.
select {shown}
  from unnest(%(chains)s::text[]) c (name)
 cross join lateral (
       select * from sweep s
        where s.chain = c.name and s.step = 'failed' and s.ended_by is null and s.rescue_no is null
          and not exists (
              select from sweep l
               where l.chain = s.chain and l.address = s.address and l.sweep_id > s.sweep_id and l.rescue_no is null
                 and (l.step = 'done' or l.ended_by is not null))
        order by s.ended_ms limit %(limit)s::int) f
 order by ended_ms;

-- name: settle_failed
-- A person ends what a worker has ended as failed: it was looked at.
update sweep set ended_by = %(actor)s::text
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint and step = 'failed' and ended_by is null
returning sweep_id;

-- name: read_signed
-- Everything that was signed for one transaction of a sweep, oldest first.
select raw, tx_hash, built_at_block from sweep_signed
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint and kind = %(kind)s::text order by attempt_no;

-- name: next_token_nonce
-- The nonce after all that sweeps have used of a deposit address.
select coalesce(max(token_nonce) + 1, 0) from sweep where chain = %(chain)s::text and address = %(address)s::bytea;

-- name: take_step
-- Compare and swap of the version. The row is locked until the commit. After a rollback it never succeeds.
update sweep set version = version + 1
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint and version = %(version)s::int and ended_ms is null
   and not exists (select from rollback_evidence);

-- name: store_signed
-- The signed bytes, before anybody broadcasts them.
insert into sweep_signed (chain, sweep_id, kind, attempt_no, raw, tx_hash, built_at_block, signed_ms)
values (%(chain)s::text, %(sweep_id)s::bigint, %(kind)s::text, %(attempt_no)s::int, %(raw)s::bytea, %(tx_hash)s::text,
        %(built_at_block)s::bigint, %(now_ms)s::bigint);

-- name: set_nonces
-- The nonce of a transaction, set with its first signature. A null changes nothing. What is signed is not stalled.
update sweep set top_up_nonce = coalesce(top_up_nonce, %(top_up_nonce)s::bigint),
                 token_nonce = coalesce(token_nonce, %(token_nonce)s::bigint), obstacle = null, stalled_ms = null
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint;

-- name: note_obstacle
-- Why a sweep waits, and since when it can't be signed. Null if it does not wait.
update sweep set obstacle = %(obstacle)s::text, stalled_ms = %(stalled_ms)s::bigint
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint and version = %(version)s::int
   and ended_ms is null and (obstacle, stalled_ms) is distinct from (%(obstacle)s::text, %(stalled_ms)s::bigint);

-- name: end_top_up
-- The coin has arrived finally. The token is next.
update sweep set step = %(step)s::text, top_up_tx_hash = %(tx_hash)s::text, top_up_fee = %(fee)s::bigint, obstacle = null,
                 stalled_ms = null
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint;

-- name: end_token
-- The token has arrived finally.
update sweep set step = %(step)s::text, token_tx_hash = %(tx_hash)s::text, token_fee = %(fee)s::bigint,
                 ended_ms = %(now_ms)s::bigint, obstacle = null, stalled_ms = null
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint;

-- name: end_rescue
-- What the token's log says of a rescue. Coin arrives as it was sent.
update rescue r set arrived = %(arrived)s::numeric
  from sweep s
 where s.chain = %(chain)s::text and s.sweep_id = %(sweep_id)s::bigint and r.rescue_no = s.rescue_no;

-- name: end_without
-- It ends although its transaction moved nothing. What that burnt is kept.
update sweep set step = %(step)s::text, cause = %(cause)s::text, ended_by = %(ended_by)s::text, ended_ms = %(now_ms)s::bigint,
                 obstacle = null, stalled_ms = null,
                 top_up_fee = case when step = 'top_up' then %(fee)s::bigint else top_up_fee end,
                 token_fee = case when step in ('token', 'rescue') then %(fee)s::bigint else token_fee end
 where chain = %(chain)s::text and sweep_id = %(sweep_id)s::bigint;

-- name: drop_unsigned
-- Old sweeps without a signature: their prices have changed, so they are planned again. The first signature raises the version.
-- It is a column of the locked row, so a signature that was committed while this waited is seen. A successor is not planned
-- again: it spends the rest of a budget, and fails if it can't be signed. Nor is a rescue. After a rollback none is dropped: its
-- signature may be among what was lost.
update sweep s set step = %(step)s::text, version = version + 1, ended_ms = %(now_ms)s::bigint, obstacle = null, stalled_ms = null,
                   cause = 'nothing was signed in time' || coalesce(': ' || obstacle, '')
 where s.chain = %(chain)s::text and s.ended_ms is null and s.opened_ms <= %(before_ms)s::bigint
   and s.version = 0 and s.continues is null and s.rescue_no is null and not exists (select from rollback_evidence);

-- name: sum_sweeps
-- A chain's sweeps for reconciliation: moved, open, burnt, and coin left at addresses.
select coalesce(sum(amount) filter (where step = 'done'), 0)::bigint as moved_units,
       coalesce(sum(amount) filter (where ended_ms is null), 0)::bigint as open_units,
       coalesce(sum(coalesce(top_up_fee, 0) + coalesce(token_fee, 0)), 0)::numeric as burnt,
       coalesce(sum(top_up) filter (where top_up_tx_hash is not null), 0)::numeric as topped_up
  from sweep where chain = %(chain)s::text;
