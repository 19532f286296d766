-- The payer's queue, its claims and what it must remember between two moments. Queues are peeked without a lock;
-- every write below names one order and the fence of the claim it is made under.

-- name: peek_due
-- Orders with something to do: approved ones of active merchants, those taken up, and failed ones to be refunded;
-- without the ones that are claimed or rest, are frozen, or have no bytes yet while their chain's wallet is frozen.
select w.merchant_id, w.order_id
  from withdrawal w
  join merchant m on m.merchant_id = w.merchant_id
  left join payout p on p.merchant_id = w.merchant_id and p.order_id = w.order_id
 where w.status in (0, 1, 3)
   and (w.status <> 0 or (w.approved_ms is not null and m.status = 'active'))
   and (w.status <> 3 or not %(hold_refunds)s::boolean)
   and p.frozen_ms is null
   and (p.claimed_until_ms is null or p.claimed_until_ms <= %(now_ms)s::bigint
        -- No claim or rest is this long: the clock went back.
        or p.claimed_until_ms > %(now_ms)s::bigint + 60000)
   and (w.status = 3 or p.decided_ms is not null or w.chain not in (
        select x.chain from payout f join withdrawal x on x.merchant_id = f.merchant_id and x.order_id = f.order_id
         where f.frozen_ms is not null and f.freezes_wallet))
 order by w.created_ms, w.merchant_id, w.order_id
 limit %(limit)s::int;

-- name: claim
-- Takes an order that nobody holds, under a fence higher than any before. Two that try at once: one gets no row.
insert into payout (merchant_id, order_id, fence, claimed_by, claimed_until_ms)
values (%(merchant_id)s::bigint, %(order_id)s::bigint, 1, %(claimed_by)s::text, %(until_ms)s::bigint)
on conflict (merchant_id, order_id) do update
   set fence = payout.fence + 1, claimed_by = excluded.claimed_by, claimed_until_ms = excluded.claimed_until_ms
 where (payout.claimed_until_ms <= %(now_ms)s::bigint or payout.claimed_until_ms > %(now_ms)s::bigint + 60000)
   and payout.frozen_ms is null
returning fence, failures;

-- name: read_order
-- The order, what its merchant may do now and under which version of the settings, and what was decided before.
select w.order_id, w.mc_order_id, w.amount, w.fee, w.rate_e8, w.chain, w.address, w.notify_url, w.status, w.step_no,
       w.approved_ms, w.deadline_ms, w.created_ms, w.finished_ms, w.notified_ms, w.tx_hash,
       m.status = 'active', b.settings_version, p.raw, p.tx_hash, p.unpayable_cause
  from withdrawal w
  join merchant m on m.merchant_id = w.merchant_id
  join book b on b.merchant_id = w.merchant_id
  left join payout p on p.merchant_id = w.merchant_id and p.order_id = w.order_id
 where w.merchant_id = %(merchant_id)s::bigint and w.order_id = %(order_id)s::bigint;

-- name: read_entry
-- The entry that opened the order, and the hash of the entry before it, which its own hash is chained to.
select e.kind, e.mc_order_id, e.at_ms, e.rate_e8, e.facts, e.hash,
       (select f.hash from entry f where f.merchant_id = e.merchant_id and f.entry_id < e.entry_id
         order by f.entry_id desc limit 1)
  from entry e where e.merchant_id = %(merchant_id)s::bigint and e.entry_id = %(order_id)s::bigint;

-- name: read_postings
-- That entry's money.
select source_id, target_id, currency, amount, source_balance, target_balance
  from posting where merchant_id = %(merchant_id)s::bigint and entry_id = %(order_id)s::bigint order by posting_no;

-- name: store_signed
-- The signed bytes, once for ever, before anybody broadcasts them.
update payout set raw = %(raw)s::bytea, tx_hash = %(tx_hash)s::text, decided_ms = %(now_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and fence = %(fence)s::bigint
   and decided_ms is null and frozen_ms is null;

-- name: store_unpayable
-- The proof that nothing was signed and nothing ever will be: from here on no bytes can be stored.
update payout set unpayable_cause = %(cause)s::text, decided_ms = %(now_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and fence = %(fence)s::bigint
   and decided_ms is null and frozen_ms is null;

-- name: release
-- Gives the claim up; until the moment given the order rests.
update payout set claimed_until_ms = %(until_ms)s::bigint, failures = %(failures)s::int
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and fence = %(fence)s::bigint;

-- name: freeze
-- Stops the order, and when asked all new payouts of its chain, until an operator has looked.
update payout set frozen_cause = %(cause)s::text, frozen_ms = %(now_ms)s::bigint, freezes_wallet = %(wallet)s::boolean
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and fence = %(fence)s::bigint
   and frozen_ms is null;

-- name: thaw
-- An operator's word that the order may go on; the next claim takes a higher fence as always.
update payout set frozen_cause = null, frozen_ms = null, freezes_wallet = false
 where merchant_id = %(merchant_id)s::bigint and order_id = %(order_id)s::bigint and frozen_ms is not null;

-- name: list_frozen
-- What waits for an operator, oldest first.
select merchant_id, order_id, frozen_cause, frozen_ms, freezes_wallet
  from payout where frozen_ms is not null order by frozen_ms, merchant_id, order_id;

-- name: peek_expired
-- Orders past their deadline that nobody approved, page by page.
select merchant_id, order_id from withdrawal
 where status = 0 and approved_ms is null and deadline_ms < %(now_ms)s::bigint
   and (merchant_id, order_id) > (%(after_merchant_id)s::bigint, %(after_order_id)s::bigint)
 order by merchant_id, order_id limit %(limit)s::int;
