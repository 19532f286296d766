-- Why nothing may be signed with a hot wallet's key: its freeze, the stops of its chain's payouts, a rollback of the database.

-- name: find_causes
-- Why nothing new may be signed on a chain. What comes in does not wait for a stop of payouts.
select 'the wallet is frozen: ' || h.frozen_cause from hot_wallet h
 where h.chain = %(chain)s::text and h.frozen_ms is not null
union all
select s.actor || ' stopped payouts: ' || s.cause from payout_stop s
 where s.chain = %(chain)s::text and not %(comes_in)s::boolean
union all
select 'the database was rolled back: ' || r.cause from rollback_evidence r;

-- name: freeze_wallet
-- Freeze the wallet until an operator has looked. The first cause stays. A fault of a former wallet stops no other.
update hot_wallet set frozen_cause = %(cause)s::text, frozen_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and (%(wallet)s::bytea is null or address = %(wallet)s::bytea) and frozen_ms is null;

-- name: thaw_wallet
-- An operator lets the wallet pay again. The chain is asked anew for its next nonce and its balance.
update hot_wallet
   set frozen_cause = null, frozen_ms = null, next_nonce = null, funds = null, funds_ended_payouts = null, checked_ms = null
 where chain = %(chain)s::text and frozen_ms is not null;

-- name: is_frozen
-- Whether a chain's wallet is frozen.
select exists (select from hot_wallet where chain = %(chain)s::text and frozen_ms is not null);

-- name: stop
-- An actor stops a chain's payouts. The actor's first cause stays.
insert into payout_stop (chain, actor, cause, since_ms)
values (%(chain)s::text, %(actor)s::text, %(cause)s::text, %(now_ms)s::bigint)
on conflict (chain, actor) do nothing;

-- name: lock_frozen
-- Whether a chain's wallet is frozen. Locks it until the end of the transaction.
select frozen_cause, frozen_ms from hot_wallet where chain = %(chain)s::text for update;

-- name: take_back_stop
-- Removes one stop, exactly as it was read.
delete from payout_stop
 where chain = %(chain)s::text and actor = %(actor)s::text and since_ms = %(since_ms)s::bigint;

-- name: list_stops
-- All stops, oldest first.
select chain, actor, cause, since_ms from payout_stop order by since_ms, chain, actor;
