-- What waits for a person. `inbox_lists.py` runs these. Each reads as many items of an index as are
-- asked for, and one more.

-- fragment: wanted_merchant
-- One merchant's rows, or with null all.
(%(merchant_id)s::bigint is null or merchant_id = %(merchant_id)s::bigint)

-- name: list_unapproved
-- The orders that have waited for approval longest.
select w.merchant_id, m.name as merchant_name, w.order_id, w.mc_order_id, w.chain, w.amount as amount_units, w.created_ms,
       w.deadline_ms, w.first_approved_by, w.address
  from (select * from withdrawal
         where status = 0 and approved_ms is null and {open_books} order by created_ms, order_id limit %(limit)s::int) w
  join merchant m on m.merchant_id = w.merchant_id
 order by w.created_ms, w.order_id;

-- name: list_unapproved_of_merchant
-- The same of one merchant, among its oldest pending orders of each chain.
select w.merchant_id, m.name as merchant_name, w.order_id, w.mc_order_id, w.chain, w.amount as amount_units, w.created_ms,
       w.deadline_ms, w.first_approved_by, w.address
  from unnest(chain_codes()) c (chain)
 cross join lateral (
       select * from withdrawal
        where merchant_id = %(merchant_id)s::bigint and status = 0 and chain = c.chain
        order by created_ms, order_id limit 10 * %(limit)s::int) w
  join merchant m on m.merchant_id = w.merchant_id
 where w.approved_ms is null
 order by w.created_ms, w.order_id limit %(limit)s::int;

-- name: list_secret_waits
-- Whose approvals of these merchants' orders do not count yet: who made a secret of the merchant.
select merchant_id, person, max(eligible_ms) as eligible_ms from staff_secret
 where merchant_id = any (%(merchant_ids)s::bigint[]) and eligible_ms > %(at_ms)s::bigint
 group by merchant_id, person;

-- name: list_dead_letters
-- Merchants with callbacks that were given up. It jumps from merchant to merchant along the index, so a merchant with a million
-- dead letters costs no more than one with a single one.
with recursive owner as (
    (select c.merchant_id from callback c where c.state in ('dead_letter', 'paused') and c.{open_books}
      order by c.merchant_id limit 1)
    union all
    select (select c.merchant_id from callback c
             where c.state in ('dead_letter', 'paused') and c.merchant_id > o.merchant_id and c.{open_books}
             order by c.merchant_id limit 1)
      from owner o where o.merchant_id is not null)
select o.merchant_id, m.name as merchant_name, d.callbacks, d.oldest_ms
  from owner o
  join merchant m on m.merchant_id = o.merchant_id
 cross join lateral (
       select count(*) as callbacks, min(l.created_ms) as oldest_ms
         from unnest(array['withdrawal', 'deposit']) v (event_type)
        cross join lateral (
              select created_ms from callback
               where merchant_id = o.merchant_id and state = 'dead_letter' and event_type = v.event_type
               order by created_ms limit %(most)s::int) l) d
 where d.callbacks > 0
 limit %(limit)s::int;

-- name: count_dead_letters_of_merchant
-- One merchant's callbacks that were given up.
select m.merchant_id, m.name as merchant_name, count(l.created_ms) as callbacks, min(l.created_ms) as oldest_ms
  from merchant m
 cross join unnest(array['withdrawal', 'deposit']) v (event_type)
 cross join lateral (
       select created_ms from callback
        where merchant_id = m.merchant_id and state = 'dead_letter' and event_type = v.event_type
        order by created_ms limit %(most)s::int) l
 where m.merchant_id = %(merchant_id)s::bigint
 group by m.merchant_id, m.name;

-- name: list_held_deposits
-- The deposits that a person must decide about.
select d.merchant_id, m.name as merchant_name, d.chain, d.tx_hash, d.log_index, d.amount as amount_units, d.seen_ms
  from (select * from deposit
         where status = 'held' and {wanted_merchant} and {open_books}
           -- What screening holds is listed there. A merchant sees it here.
           and (%(merchant_id)s::bigint is not null or cause is null or not starts_with(cause, 'screening '))
         order by seen_ms limit %(limit)s::int) d
  join merchant m on m.merchant_id = d.merchant_id
 order by d.seen_ms;

-- name: count_dust
-- The deposits of each chain that are too small to be credited, up to a bound.
select c.chain, count(d.seen_ms) as deposits, coalesce(sum(d.amount), 0) as amount_units, min(d.seen_ms) as oldest_ms
  from unnest(chain_codes()) c (chain)
 cross join lateral (
       select seen_ms, amount from deposit
        where status = 'dust' and chain = c.chain and {open_books} order by seen_ms limit %(most)s::int) d
 group by c.chain;

-- name: count_dust_of_merchant
-- The same of one merchant.
select c.chain, count(d.seen_ms) as deposits, coalesce(sum(d.amount), 0) as amount_units, min(d.seen_ms) as oldest_ms
  from unnest(chain_codes()) c (chain)
 cross join lateral (
       select seen_ms, amount from deposit
        where merchant_id = %(merchant_id)s::bigint and status = 'dust' and chain = c.chain
        order by seen_ms limit %(most)s::int) d
 group by c.chain;

-- name: list_frozen
-- The payouts that wait until an operator has looked, oldest first.
select p.merchant_id, m.name as merchant_name, p.order_id, p.chain, p.frozen_ms
  from (select merchant_id, order_id, chain, frozen_ms from payout
         where frozen_ms is not null and {wanted_merchant} order by frozen_ms limit %(limit)s::int) p
  join merchant m on m.merchant_id = p.merchant_id
 order by p.frozen_ms;

-- name: list_held_screenings
-- The orders and deposits that screening holds until a person has decided, oldest first.
select s.merchant_id, m.name as merchant_name, s.screening_no, s.order_id, s.chain, s.tx_hash, s.log_index,
       s.amount as amount_units, s.begun_ms
  from (select * from screening
         where state in ('open', 'held') and state = 'held' and {wanted_merchant} order by screening_no limit %(limit)s::int) s
  join merchant m on m.merchant_id = s.merchant_id
 order by s.screening_no;

-- name: list_last_comparisons
-- The last comparison of books and chain, for each chain. `since_ms` is the time of the first one after the last sound one, and
-- `began_failed` whether that one failed.
select c.chain, r.at_ms, r.is_sound, r.cause is not null as is_failed, r.unexplained_units, f.at_ms as since_ms,
       f.cause is not null as began_failed
  from unnest(%(chains)s::text[]) c (chain)
 cross join lateral (
       select * from reconciliation where chain = c.chain order by reconciliation_no desc limit 1) r
  left join lateral (
       select b.reconciliation_no
         from (select reconciliation_no, is_sound from reconciliation
                where chain = c.chain order by reconciliation_no desc limit %(most)s::int) b
        where b.is_sound order by b.reconciliation_no desc limit 1) s on true
 cross join lateral (
       select at_ms, cause from reconciliation
        where chain = c.chain and reconciliation_no > least(coalesce(s.reconciliation_no, 0), r.reconciliation_no - 1)
        order by reconciliation_no limit 1) f;

-- name: list_unread_chains
-- What keeps a chain from being read.
select chain, alert, moved_ms from chain_cursor where alert is not null and chain = any (%(chains)s::text[]);

-- name: list_failed_sign_ins
-- Who many sign-ins failed for since a time, by day. A day that somebody has seen comes back as soon as one more fails.
select f.merchant_id, f.subject, f.day, f.failures, coalesce(s.failures, 0) as seen, s.seen_by,
       case when s.seen_ms is null then f.first_ms
            else coalesce((select min(greatest(x.minute_ms, s.seen_ms)) from failed_sign_in x
                            where x.merchant_id = f.merchant_id and x.subject = f.subject and x.last_ms > s.seen_ms),
                          s.seen_ms) end as since_ms
  from (select merchant_id, subject, minute_ms / 86400000 as day, sum(failures) as failures, min(minute_ms) as first_ms
          from failed_sign_in
         where minute_ms >= %(since_ms)s::bigint
           and (%(merchant_id)s::bigint is null or merchant_id = %(merchant_id)s::bigint)
         group by merchant_id, subject, minute_ms / 86400000
        having sum(failures) >= %(least)s::int) f
  left join failed_sign_in_seen s on s.merchant_id = f.merchant_id and s.subject = f.subject and s.day = f.day
 where f.failures > coalesce(s.failures, 0)
 order by since_ms limit %(limit)s::int;

-- name: list_staff_secrets
-- Secrets of a merchant, and access to it, that the platform's people made since a time: each once, though two people make it.
-- A row of everybody is no secret (`staff_secrets`).
select key_no, made_ms from staff_secret
 where merchant_id = %(merchant_id)s::bigint and made_ms >= %(since_ms)s::bigint and person <> '*'
 group by key_no, made_ms order by made_ms, key_no limit %(limit)s::int;

-- name: list_unreached
-- People whom messages could not reach since a time.
select n.operator_id, o.name, o.merchant_id, n.channel, min(n.ended_ms) as since_ms, count(*) as messages
  from notification n join operator o on o.operator_id = n.operator_id
 where n.state = 'failed' and n.ended_ms >= %(since_ms)s::bigint and not n.is_test
   and (%(merchant_id)s::bigint is null or o.merchant_id = %(merchant_id)s::bigint)
 group by n.operator_id, o.name, o.merchant_id, n.channel order by since_ms limit %(limit)s::int;
