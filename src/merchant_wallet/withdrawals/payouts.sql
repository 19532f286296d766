-- The payer's queue, its claims and its memory. The queue is read without a lock. Every write names one order and the
-- fencing token of its claim.

-- name: peek_due
-- Orders with something to do: approved ones of active merchants, those taken up, and failed ones to refund. Left out
-- are orders that are claimed, rest or are frozen, and unsigned orders of stopped chains. The longest waiting come
-- first, not the oldest: otherwise orders that only wait for a chain would keep new ones from being signed. Chains
-- without a free slot are left out. After a rollback of the database nothing is due.
select w.merchant_id, w.order_id, w.chain
  from withdrawal w
  join merchant m on m.merchant_id = w.merchant_id
  left join payout p on p.merchant_id = w.merchant_id and p.order_id = w.order_id
 where w.status in (0, 1, 3)
   and (w.status <> 0 or (w.approved_ms is not null and m.status = 'active'))
   and (w.status <> 3 or not %(hold_refunds)s::boolean)
   and w.chain <> all(%(full_chains)s::text[])
   and p.frozen_ms is null
   and (p.claimed_until_ms is null or p.claimed_until_ms <= %(now_ms)s::bigint
        -- No claim or rest is this long, so the clock went back.
        or p.claimed_until_ms > %(now_ms)s::bigint + 60000)
   and (w.status = 3 or p.signed_no > 0 or p.given_up_ms is not null or w.chain not in (
        select s.chain from payout_stop s union all select h.chain from hot_wallet h where h.frozen_ms is not null))
   and not exists (select from rollback_evidence)
 order by coalesce(p.claimed_until_ms, w.approved_ms, w.created_ms), w.merchant_id, w.order_id
 limit %(limit)s::int;

-- name: claim
-- Claims an order that nobody holds, with a higher fencing token than any before. If two try at once, one gets no row.
-- After a rollback nobody gets one: the order may have been paid in what was lost.
insert into payout (merchant_id, order_id, fence, claimed_by, claimed_until_ms)
select %(merchant_id)s::bigint, %(order_id)s::bigint, 1, %(claimed_by)s::text, %(until_ms)s::bigint
 where not exists (select from rollback_evidence)
on conflict (merchant_id, order_id) do update
   set fence = payout.fence + 1, claimed_by = excluded.claimed_by, claimed_until_ms = excluded.claimed_until_ms
 where (payout.claimed_until_ms <= %(now_ms)s::bigint or payout.claimed_until_ms > %(now_ms)s::bigint + 60000)
   and payout.frozen_ms is null
returning fence, failures;

-- name: read_order
-- The order, its merchant's status and settings version, earlier decisions, its reservation, and what blocks it since
-- when.
select w.order_id, w.mc_order_id, w.amount, w.fee, w.rate_e8, w.chain, w.address, w.notify_url, w.status, w.step_no,
       w.approved_ms, w.deadline_ms, w.created_ms, w.finished_ms, w.notified_ms, w.tx_hash,
       w.second_limit_units, w.first_approved_by, w.approved_by, w.first_approved_ms, w.first_eligible_ms,
       w.approved_eligible_ms,
       m.status = 'active', b.settings_version, p.given_up_cause, r.wallet, r.nonce, p.obstacle_kind, p.obstacle_ms
  from withdrawal w
  join merchant m on m.merchant_id = w.merchant_id
  join book b on b.merchant_id = w.merchant_id
  left join payout p on p.merchant_id = w.merchant_id and p.order_id = w.order_id
  left join payout_reservation r on r.merchant_id = w.merchant_id and r.order_id = w.order_id
 where w.merchant_id = %(merchant_id)s::bigint and w.order_id = %(order_id)s::bigint;

-- name: read_signed
-- Everything that was signed for the order, oldest first.
select attempt_no, raw, tx_hash, built_at_block, signed_ms, broadcast_ms
  from payout_signed where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint
 order by attempt_no;

-- name: read_entry
-- The entry that created the order, and the hash of the entry before it, which its own hash is chained to.
select e.kind, e.mc_order_id, e.at_ms, e.rate_e8, e.facts, e.hash,
       (select f.hash from entry f where f.merchant_id = e.merchant_id and f.entry_id < e.entry_id
         order by f.entry_id desc limit 1)
  from entry e where e.merchant_id = %(merchant_id)s::bigint and e.entry_id = %(order_id)s::bigint;

-- name: read_postings
-- That entry's postings.
select source_id, target_id, currency, amount, source_balance, target_balance
  from posting where merchant_id = %(merchant_id)s::bigint and entry_id = %(order_id)s::bigint order by posting_no;

-- name: store_signed
-- The signed bytes, before anybody broadcasts them. The update locks the order's row, so no later claim can come
-- between the check of the token and the insert. It also counts, so only the next number fits. The payer names the
-- number, so the key refuses one that exists.
with held as (
    update payout p set signed_no = p.signed_no + 1
     where p.merchant_id = %(merchant_id)s::bigint and p.order_id = %(order_id)s::bigint and p.fence = %(fence)s::bigint
       and p.signed_no = %(attempt_no)s::int - 1 and p.given_up_ms is null and p.frozen_ms is null
       and not exists (select from payout_stop s where s.chain = %(chain)s::text)
       and not exists (select from rollback_evidence)
       and exists (select from hot_wallet h
                    where h.chain = %(chain)s::text and h.address = %(wallet)s::bytea and h.frozen_ms is null)
    returning p.merchant_id, p.order_id)
insert into payout_signed (merchant_id, order_id, attempt_no, raw, tx_hash, built_at_block, signed_ms)
select merchant_id, order_id, %(attempt_no)s::int, %(raw)s::bytea, %(tx_hash)s::text, %(built_at_block)s::bigint, %(now_ms)s::bigint
  from held;

-- name: is_next
-- Whether a write was refused although the claim still holds and its number is the next.
select fence = %(fence)s::bigint and signed_no = %(attempt_no)s::int - 1 and given_up_ms is null and frozen_ms is null
  from payout where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint;

-- name: mark_broadcast
-- When a node first took the bytes. Only for the operator.
update payout_signed set broadcast_ms = %(now_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and attempt_no = %(attempt_no)s::int
   and broadcast_ms is null;

-- name: release
-- Releases the claim. The order rests until the given moment. An unchanged obstacle keeps the time when it began.
update payout
   set claimed_until_ms = %(until_ms)s::bigint, failures = %(failures)s::int,
       obstacle_kind = %(obstacle_kind)s::text, obstacle_cause = %(obstacle_cause)s::text,
       obstacle_ms = case when %(obstacle_kind)s::text is null then null
                          when obstacle_kind = %(obstacle_kind)s::text then obstacle_ms
                          else %(now_ms)s::bigint end
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and fence = %(fence)s::bigint;

-- name: thaw
-- An operator lets the order go on. The next claim takes a higher token as always.
update payout set frozen_cause = null, frozen_ms = null
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and frozen_ms is not null;

-- name: list_frozen
-- Frozen orders, oldest first.
select merchant_id, order_id, frozen_cause, frozen_ms
  from payout where frozen_ms is not null order by frozen_ms, merchant_id, order_id;

-- name: list_blocked
-- Orders that wait for an obstacle to pass, the longest waiting first.
select p.merchant_id, p.order_id, w.chain, p.obstacle_kind, p.obstacle_cause, p.obstacle_ms
  from payout p join withdrawal w on w.merchant_id = p.merchant_id and w.order_id = p.order_id
 where p.obstacle_ms is not null and w.status in (0, 1, 3)
 order by p.obstacle_ms, p.merchant_id, p.order_id limit %(limit)s::int;

-- name: show_payout
-- The state of one order's payout.
select p.claimed_by, p.claimed_until_ms, p.failures, p.given_up_cause, p.frozen_cause, p.frozen_ms,
       p.obstacle_kind, p.obstacle_cause, p.obstacle_ms, r.wallet, r.nonce
  from payout p
  left join payout_reservation r on r.merchant_id = p.merchant_id and r.order_id = p.order_id
 where p.merchant_id = %(merchant_id)s::bigint and p.order_id = %(order_id)s::bigint;

-- name: peek_expired
-- Unapproved orders after their deadline, page by page. After a rollback there is none. A frozen order is left out: it
-- may have been approved and paid in what was lost, so its hold must not return to the merchant. The book checks again.
select w.merchant_id, w.order_id from withdrawal w
 where w.status = 0 and w.approved_ms is null and w.deadline_ms < %(now_ms)s::bigint
   and not exists (select from rollback_evidence)
   and not exists (select from payout p
                    where p.merchant_id = w.merchant_id and p.order_id = w.order_id and p.frozen_ms is not null)
   and (w.merchant_id, w.order_id) > (%(after_merchant_id)s::bigint, %(after_order_id)s::bigint)
 order by w.merchant_id, w.order_id limit %(limit)s::int;
