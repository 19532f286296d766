-- kind: expand
-- Rescues: another token, or the chain's coin, is moved from a deposit address to an address of the owner's.

-- step: transaction
-- What two people decided. Without `contract` it is the chain's coin, without `asked` everything that is there. Amounts are in
-- smallest units. `arrived` is what the token's log says. A rescue without a sweep may end with a cause; others end with their sweep.
create table if not exists rescue (
    rescue_no bigint generated always as identity primary key,
    chain chain_code not null,
    address bytea not null constraint rescue_address check (length(address) = 20),
    merchant_id bigint not null references merchant,
    account_no int not null constraint rescue_account_no check (account_no >= 0),
    branch int not null constraint rescue_branch check (branch in (0, 1)),
    address_index int not null constraint rescue_address_index check (address_index >= 0),
    contract bytea constraint rescue_contract check (length(contract) = 20 and contract <> recipient),
    asked numeric(78) constraint rescue_asked check (asked > 0),
    recipient bytea not null constraint rescue_recipient check (length(recipient) = 20 and recipient <> address),
    proposal_no bigint unique,
    actor text not null constraint rescue_actor check (actor <> ''),
    opened_ms bigint not null,
    arrived numeric(78) constraint rescue_arrived check (arrived > 0),
    obstacle text constraint rescue_obstacle check (obstacle <> ''),
    cause text constraint rescue_cause check (cause <> ''),
    ended_ms bigint,
    constraint rescue_ended check ((cause is null) = (ended_ms is null) and (ended_ms is null or arrived is null))
);
create index if not exists rescue_newest on rescue (chain, address, rescue_no);

-- A sweep that carries a rescue out moves no USDT, and needs no price. It has a last step of its own: a program of the version
-- before does not know it, and can neither sign nor end it.
alter table sweep add column if not exists rescue_no bigint;
alter table sweep add column if not exists rescued numeric(78);
-- squawk-ignore ban-drop-constraint
alter table sweep drop constraint if exists sweep_rescue_no;
alter table sweep add constraint sweep_rescue_no foreign key (rescue_no) references rescue not valid;
-- squawk-ignore ban-drop-constraint
alter table sweep drop constraint if exists sweep_rescued;
alter table sweep add constraint sweep_rescued
    check ((rescue_no is null) = (rescued is null) and (rescued is null or rescued > 0)) not valid;
-- squawk-ignore ban-drop-constraint
alter table sweep drop constraint if exists sweep_rescue_step;
alter table sweep add constraint sweep_rescue_step
    check (case when rescue_no is null then step <> 'rescue' else step <> 'token' end) not valid;
-- squawk-ignore ban-drop-constraint
alter table sweep drop constraint if exists sweep_amount_check;
alter table sweep add constraint sweep_amount_check
    check (case when rescue_no is null then amount > 0 else amount = 0 end) not valid;
-- squawk-ignore ban-drop-constraint
alter table sweep drop constraint if exists sweep_coin_price_check;
alter table sweep add constraint sweep_coin_price_check
    check (case when rescue_no is null then coin_price > 0 else coin_price = 0 end) not valid;
-- squawk-ignore ban-drop-constraint
alter table sweep drop constraint if exists sweep_step_check;
alter table sweep add constraint sweep_step_check
    check (step in ('top_up', 'token', 'rescue', 'done', 'continued', 'failed', 'dropped')) not valid;
-- squawk-ignore ban-drop-constraint
alter table sweep drop constraint if exists sweep_ended;
alter table sweep add constraint sweep_ended
    check ((ended_ms is null) = (step in ('top_up', 'token', 'rescue'))) not valid;
-- squawk-ignore ban-drop-constraint
alter table sweep_signed drop constraint if exists sweep_signed_kind_check;
alter table sweep_signed add constraint sweep_signed_kind_check check (kind in ('top_up', 'token', 'rescue')) not valid;

-- step: transaction
alter table sweep validate constraint sweep_rescue_no;
alter table sweep validate constraint sweep_rescued;
alter table sweep validate constraint sweep_rescue_step;
alter table sweep validate constraint sweep_amount_check;
alter table sweep validate constraint sweep_coin_price_check;
alter table sweep validate constraint sweep_step_check;
alter table sweep validate constraint sweep_ended;
alter table sweep_signed validate constraint sweep_signed_kind_check;

-- step: concurrently
-- A rescue is carried out by one sweep, and those that continue it.
create unique index concurrently if not exists sweep_rescue_once on sweep (rescue_no)
    where rescue_no is not null and continues is null;

-- step: concurrently
-- The sweeps of a rescue.
create index concurrently if not exists sweep_rescue on sweep (rescue_no, sweep_id) where rescue_no is not null;
