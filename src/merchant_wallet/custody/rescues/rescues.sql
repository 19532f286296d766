-- Rescues as two people decided them. The sweep that carries one out is in `sweep`.

-- name: lock_address
-- Rescues of an address are decided one after another.
select pg_advisory_xact_lock(hashtext('rescue ' || %(chain)s::text), hashtext(encode(%(address)s::bytea, 'hex')));

-- name: count_rescues
-- How many rescues there were at an address, and whether something is being moved from there.
select count(*),
       exists (select from sweep where chain = %(chain)s::text and address = %(address)s::bytea and ended_ms is null)
    or exists (select from rescue o where o.chain = %(chain)s::text and o.address = %(address)s::bytea and o.ended_ms is null
                  and not exists (select from sweep s where s.rescue_no = o.rescue_no))
  from rescue where chain = %(chain)s::text and address = %(address)s::bytea;

-- name: find_account
-- Whose an address is, and the account of that merchant's keys.
select i.merchant_id, p.account_no
  from issued_address i
  left join xpub_pool p on p.merchant_id = i.merchant_id
 where i.address = %(address)s::bytea;

-- name: find_owner
-- What an address of a merchant was issued for, in the merchant's cell: a sub-user, or the merchant itself.
select s.ext_user_id, 0 as branch, s.address_index, s.evm_address = %(address)s::bytea as is_evm
  from wallet_address w join sub_user s on s.merchant_id = w.merchant_id and s.user_id = w.user_id
 where w.merchant_id = %(merchant_id)s::bigint and w.address = %(address)s::bytea
union all
select null, 1, 0, m.chain = %(evm)s::text
  from merchant_address m
 where m.merchant_id = %(merchant_id)s::bigint and m.address = %(address)s::bytea;

-- name: add_rescue
-- What two people decided, before anything is signed.
insert into rescue (chain, address, merchant_id, account_no, branch, address_index, contract, asked, recipient, proposal_no,
                    actor, opened_ms)
values (%(chain)s::text, %(address)s::bytea, %(merchant_id)s::bigint, %(account_no)s::int, %(branch)s::int,
        %(address_index)s::int, %(contract)s::bytea, %(asked)s::numeric, %(recipient)s::bytea, %(proposal_no)s::bigint,
        %(actor)s::text, %(now_ms)s::bigint)
returning rescue_no;

-- name: list_unopened
-- Rescues of a chain without a sweep, oldest first. After a rollback of the database none is begun.
select rescue_no, address, contract, asked, recipient, opened_ms, obstacle
  from rescue r
 where chain = %(chain)s::text and ended_ms is null
   and not exists (select from sweep s where s.rescue_no = r.rescue_no)
   and not exists (select from rollback_evidence)
 order by rescue_no;

-- name: open_sweep
-- The sweep of a rescue, unless something is being moved from the address, or another worker or a person was faster. The
-- rescue's row is locked, so that nobody ends it meanwhile.
insert into sweep (chain, address, merchant_id, account_no, branch, address_index, wallet, amount, coin_price, top_up,
                   top_up_fee_limit, token_fee_limit, budget, actor, opened_ms, step, rescue_no, rescued)
select chain, address, merchant_id, account_no, branch, address_index, %(wallet)s::bytea, 0, 0, %(top_up)s::bigint,
       %(top_up_fee_limit)s::bigint, %(token_fee_limit)s::bigint, %(budget)s::bigint, actor, %(now_ms)s::bigint,
       case when %(top_up)s::bigint > 0 then 'top_up' else 'rescue' end, rescue_no, %(rescued)s::numeric
  from rescue
 where rescue_no = %(rescue_no)s::bigint and ended_ms is null and not exists (select from rollback_evidence)
   for update
on conflict do nothing
returning sweep_id;

-- name: note_obstacle
-- Why a rescue does not begin. Null if it does not wait.
update rescue set obstacle = %(obstacle)s::text
 where rescue_no = %(rescue_no)s::bigint and ended_ms is null and obstacle is distinct from %(obstacle)s::text;

-- name: lock_rescue
-- Let nobody open the sweep of a rescue, or end it, before this transaction ends. The next statement sees what they did.
select from rescue where rescue_no = %(rescue_no)s::bigint for update;

-- name: fail_unopened
-- A rescue ends that could not begin. With a sweep it ends with that. After a rollback none ends: its sweep may be lost.
update rescue r set cause = %(cause)s::text, ended_ms = %(now_ms)s::bigint, obstacle = null
 where rescue_no = %(rescue_no)s::bigint and ended_ms is null
   and not exists (select from sweep s where s.rescue_no = r.rescue_no)
   and not exists (select from rollback_evidence);

-- name: settle_failed
-- A person has looked at what ended without a sweep.
update rescue set ended_by = %(ended_by)s::text, ended_by_ms = %(now_ms)s::bigint
 where rescue_no = %(rescue_no)s::bigint and ended_ms is not null and ended_by is null;

-- fragment: shown
-- A rescue and the last sweep that carries it out.
select r.rescue_no, r.chain::text, r.address, r.merchant_id, r.contract, r.asked, r.recipient, r.proposal_no, r.actor,
       r.opened_ms, case when r.ended_ms is not null then 'failed' else coalesce(s.step, 'waiting') end as step, s.sweep_id,
       s.rescued, r.arrived, s.token_tx_hash, f.fee, coalesce(s.obstacle, r.obstacle), coalesce(s.cause, r.cause),
       coalesce(s.ended_ms, r.ended_ms), coalesce(s.ended_by, r.ended_by)
  from rescue r
  left join lateral (select * from sweep w where w.rescue_no = r.rescue_no order by w.sweep_id desc limit 1) s on true
  left join lateral (
       select sum(coalesce(w.top_up_fee, 0) + coalesce(w.token_fee, 0)) as fee from sweep w
        where w.rescue_no = r.rescue_no) f on true

-- name: list_rescues
-- Rescues, newest first: all, one, or those of an address.
{shown}
 where (%(rescue_no)s::bigint is null or r.rescue_no = %(rescue_no)s::bigint)
   and (%(address)s::bytea is null or r.address = %(address)s::bytea)
 order by r.rescue_no desc limit %(limit)s::int;

-- name: list_standing
-- Rescues that wait for a person, oldest first: they failed and nobody has ended them or moved the same later, or they have
-- been under way since before a moment.
{shown}
 where case when coalesce(s.ended_ms, r.ended_ms) is null then r.opened_ms < %(before_ms)s::bigint
            else coalesce(s.step, 'failed') <> 'done' and coalesce(s.ended_by, r.ended_by) is null
             and not exists (select from rescue l where l.chain = r.chain and l.address = r.address
                                and l.contract is not distinct from r.contract and l.rescue_no > r.rescue_no) end
 order by r.rescue_no limit %(limit)s::int;

-- name: list_moved
-- What rescues moved in a period, oldest first.
{shown}
 where s.step = 'done' and s.ended_ms >= %(since_ms)s::bigint and s.ended_ms < %(until_ms)s::bigint
 order by s.ended_ms, r.rescue_no;
