-- The payer's queue, its claims and its memory: home's tables, and the orders in their cell. The queue is read without a lock.
-- Every write names one order and the fencing token of its claim.

-- name: list_unqueued
-- Approved orders that may be missing from the queue, the longest approved first.
select merchant_id, order_id, chain, approved_ms from withdrawal
 where not is_queued and approved_ms is not null and status in (0, 1, 3)
   and {open_books}
 order by approved_ms, merchant_id, order_id limit %(limit)s::int;

-- name: queue_orders
-- Puts orders into the queue. An order that is in it stays as it is, unless it only waited for its approval.
insert into payout (merchant_id, order_id, chain, fence, claimed_until_ms)
select u.merchant_id, u.order_id, u.chain, 0, u.approved_ms
  from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[], %(chains)s::text[], %(approved_ms)s::bigint[])
       u (merchant_id, order_id, chain, approved_ms)
on conflict (merchant_id, order_id) do update set phase = 'queued' where payout.phase = 'waiting';

-- name: mark_queued
-- Notes that the queue has these orders. One that is locked now is noted in a later round: nobody waits here.
update withdrawal set is_queued = true
 where (merchant_id, order_id) in (
       select w.merchant_id, w.order_id
         from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[]) u (merchant_id, order_id)
         join withdrawal w on w.merchant_id = u.merchant_id and w.order_id = u.order_id
         join book b on b.merchant_id = u.merchant_id and b.is_open
          for no key update of w skip locked);

-- name: peek_due
-- Payouts with something to do, of the merchants of one cell. Left out are those that are claimed, rest or are frozen, those of
-- merchants that are not active which nobody has claimed yet, and unsigned ones of stopped chains. The longest waiting come
-- first, not the oldest: otherwise orders that only wait for a chain would keep new ones from being signed. Chains without a
-- free slot are left out. After a rollback of the database nothing is due.
select p.merchant_id, p.order_id, p.chain
  from payout p
  join merchant m on m.merchant_id = p.merchant_id
 where p.phase <> 'closed' and p.phase <> 'waiting'
   and m.cell_id = %(cell_id)s::int
   -- A payer that was killed may have had the book take the order up: only a look at the order tells.
   and (m.status = 'active' or p.phase <> 'queued' or p.claimed_by is not null)
   and (p.phase <> 'failed' or not %(hold_refunds)s::boolean)
   and p.chain <> all(%(full_chains)s::text[])
   and p.frozen_ms is null
   and (p.claimed_until_ms <= %(now_ms)s::bigint
        -- No claim or rest is this long, so the clock went back.
        or p.claimed_until_ms > %(now_ms)s::bigint + 600000)
   and (p.phase = 'failed' or p.signed_no > 0 or p.given_up_ms is not null or p.chain not in (
        select s.chain from payout_stop s union all select h.chain from hot_wallet h where h.frozen_ms is not null))
   and not exists (select from rollback_evidence)
 order by p.claimed_until_ms, p.merchant_id, p.order_id
 limit %(limit)s::int;

-- name: claim
-- Claims an order that nobody holds, with a higher fencing token than any before. If two try at once, one gets no row.
-- After a rollback nobody gets one: the order may have been paid in what was lost.
update payout
   set fence = fence + 1, claimed_by = %(claimed_by)s::text, claimed_until_ms = %(until_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and phase <> 'closed' and frozen_ms is null
   and (claimed_until_ms <= %(now_ms)s::bigint or claimed_until_ms > %(now_ms)s::bigint + 600000)
   and not exists (select from rollback_evidence)
returning fence, failures;

-- name: read_order
-- The order, from its cell. No row if the book has moved since the order was chosen.
select order_id, mc_order_id, amount, fee, rate_e8, chain, address, notify_url, status, step_no, approved_ms, deadline_ms,
       created_ms, finished_ms, notified_ms, tx_hash, second_limit_units, first_approved_by, approved_by, first_approved_ms,
       first_eligible_ms, approved_eligible_ms
  from withdrawal where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint
   and {book_is_open};

-- name: read_decisions
-- What home knows of the order: its merchant's status and settings version, earlier decisions, its reservation, and what blocks
-- it since when.
select m.status = 'active', m.settings_version, p.given_up_cause, r.wallet, r.nonce, p.obstacle_kind, p.obstacle_ms
  from payout p
  join merchant m on m.merchant_id = p.merchant_id
  left join payout_reservation r on r.merchant_id = p.merchant_id and r.order_id = p.order_id
 where p.merchant_id = %(merchant_id)s::bigint and p.order_id = %(order_id)s::bigint;

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
       and p.phase in ('queued', 'taken_up')
       and not exists (select from payout_stop s where s.chain = %(chain)s::text)
       and not exists (select from rollback_evidence)
       and not exists (select from screening c where c.merchant_id = p.merchant_id and c.order_id = p.order_id
                          and c.state not in ('passed', 'released'))
       and exists (select from hot_wallet h
                    where h.chain = %(chain)s::text and h.address = %(wallet)s::bytea and h.frozen_ms is null)
    returning p.merchant_id, p.order_id)
insert into payout_signed (merchant_id, order_id, attempt_no, raw, tx_hash, built_at_block, signed_ms)
select merchant_id, order_id, %(attempt_no)s::int, %(raw)s::bytea, %(tx_hash)s::text, %(built_at_block)s::bigint, %(now_ms)s::bigint
  from held;

-- name: is_next
-- Whether a write was refused although the claim still holds and its number is the next.
select fence = %(fence)s::bigint and signed_no = %(attempt_no)s::int - 1 and given_up_ms is null and frozen_ms is null
       and phase in ('queued', 'taken_up')
  from payout where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint;

-- name: mark_broadcast
-- When a node first took the bytes. Only for the operator.
update payout_signed set broadcast_ms = %(now_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and attempt_no = %(attempt_no)s::int
   and broadcast_ms is null;

-- name: release
-- Releases the claim, with what is to be done next. The order rests until the given moment. An unchanged obstacle keeps the time
-- when it began. An order that waits for screening does not rest if a person has decided about it meanwhile.
update payout
   set claimed_until_ms = case when %(obstacle_kind)s::text in ('screening', 'screening_away', 'payout_rule', 'payout_hours')
                                and exists (select from screening c
                                             where c.merchant_id = %(merchant_id)s::bigint and c.order_id = %(order_id)s::bigint
                                               and c.decided_ms is not null)
                               then %(now_ms)s::bigint else %(until_ms)s::bigint end,
       failures = %(failures)s::int, phase = coalesce(%(phase)s::text, phase),
       obstacle_kind = %(obstacle_kind)s::text, obstacle_cause = %(obstacle_cause)s::text,
       obstacle_ms = case when %(obstacle_kind)s::text is null then null
                          when obstacle_kind = %(obstacle_kind)s::text then obstacle_ms
                          else %(now_ms)s::bigint end
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and fence = %(fence)s::bigint;

-- name: thaw
-- An operator lets the order go on. The next claim takes a higher token as always. Returns why it was frozen.
with frozen as (
    select merchant_id, order_id, frozen_cause, frozen_ms from payout
     where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and frozen_ms is not null
       for update)
update payout p set frozen_cause = null, frozen_ms = null
  from frozen f
 where p.merchant_id = f.merchant_id and p.order_id = f.order_id
returning f.merchant_id, f.order_id, f.frozen_cause, f.frozen_ms;

-- name: wake
-- An order that waits for screening is due now. The next claim takes a higher token as always.
update payout set claimed_until_ms = %(now_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and phase <> 'closed'
   and obstacle_kind is not null and claimed_until_ms > %(now_ms)s::bigint;

-- name: list_frozen
-- Frozen orders, oldest first.
select merchant_id, order_id, frozen_cause, frozen_ms
  from payout where frozen_ms is not null order by frozen_ms, merchant_id, order_id;

-- name: list_blocked
-- Orders that wait for an obstacle to pass, the longest waiting first.
select merchant_id, order_id, chain, obstacle_kind, obstacle_cause, obstacle_ms
  from payout where obstacle_ms is not null and phase <> 'closed'
 order by obstacle_ms, merchant_id, order_id limit %(limit)s::int;

-- name: show_payout
-- The state of one order's payout, once a payer has looked at it.
select p.claimed_by, p.claimed_until_ms, p.failures, p.given_up_cause, p.frozen_cause, p.frozen_ms,
       p.obstacle_kind, p.obstacle_cause, p.obstacle_ms, r.wallet, r.nonce
  from payout p
  left join payout_reservation r on r.merchant_id = p.merchant_id and r.order_id = p.order_id
 where p.merchant_id = %(merchant_id)s::bigint and p.order_id = %(order_id)s::bigint and p.claimed_by is not null;

-- name: peek_expired
-- Unapproved orders after their deadline, page by page. After a rollback there is none. A frozen order is left out: it
-- may have been approved and paid in what was lost, so its hold must not return to the merchant. The book checks again.
select merchant_id, order_id from withdrawal
 where status = 0 and approved_ms is null and deadline_ms < %(now_ms)s::bigint and frozen_ms is null
   and {open_books}
   and not exists (select from rollback_evidence)
   and (merchant_id, order_id) > (%(after_merchant_id)s::bigint, %(after_order_id)s::bigint)
 order by merchant_id, order_id limit %(limit)s::int;
