-- A person accepts a rollback.

-- name: add_acceptance
-- Who accepted, why, and up to when the signer's record was accepted.
insert into rollback_acceptance (accepted_ms, actor, reason, signed_upto_ms)
values (%(accepted_ms)s::bigint, %(actor)s::text, %(reason)s::text, %(signed_upto_ms)s::bigint);

-- name: clear_evidence
-- Removes all evidence, so that payouts continue.
delete from rollback_evidence;

-- fragment: freeze
-- Creates the payout that freezes an order. Its fence stops anyone who holds a claim.
insert into payout (merchant_id, order_id, chain, phase, fence, claimed_by, claimed_until_ms, frozen_cause, frozen_ms)
select w.merchant_id, w.order_id, w.chain,
       case when w.status = 1 then 'taken_up' when w.status = 3 then 'failed' when w.approved_ms is null then 'waiting'
            else 'queued' end,
       1, 'acceptance', 0, %(cause)s::text, %(now_ms)s::bigint;

-- fragment: over_claims
-- An order that was taken up has a payout already.
on conflict (merchant_id, order_id) do update
   set fence = payout.fence + 1, claimed_by = coalesce(payout.claimed_by, excluded.claimed_by),
       frozen_cause = excluded.frozen_cause, frozen_ms = excluded.frozen_ms
 where payout.frozen_ms is null
returning order_id;

-- name: freeze_signed
-- Freezes the open orders for which the signer signed more than is stored here.
{freeze}
  from unnest(%(order_ids)s::bigint[], %(counts)s::bigint[]) o (order_id, signed_count)
  join id_range r on r.range_no = (o.order_id >> %(counter_bits)s::int)::int
  join withdrawal w on w.merchant_id = r.merchant_id and w.order_id = o.order_id
  left join payout p on p.merchant_id = w.merchant_id and p.order_id = w.order_id
 where w.status in (0, 1, 3) and coalesce(p.signed_no, 0) < o.signed_count and p.frozen_ms is null
{over_claims};

-- name: freeze_open
-- Freezes every open order. This includes orders that wait for approval: they may have been approved and paid in the lost part.
{freeze}
  from withdrawal w
 where w.status in (0, 1, 3)
{over_claims};
