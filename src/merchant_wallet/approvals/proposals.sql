-- Proposals of adjustments. `proposals.py` runs these. Every change names the state that it was decided on.

-- name: lock_proposing
-- Lets one person at a time propose an adjustment of a merchant's book.
select pg_advisory_xact_lock(hashtext('proposal'), hashtext('adjustment ' || %(merchant_id)s::bigint));

-- name: find_same_open
-- An open proposal of the same adjustment that has not expired.
select merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
       decided_ms, outcome, entry_id, expires_ms
  from proposal
 where kind = 'adjustment' and state = 'open' and merchant_id = %(merchant_id)s::bigint and currency = %(currency)s::text
   and signed_units = %(signed_units)s::bigint and reason = %(reason)s::text
   and ext_user_id is not distinct from %(ext_user_id)s::text
   and (expires_ms is null or expires_ms >= %(proposed_ms)s::bigint)
 limit 1;

-- name: insert_proposal
-- Inserts a proposal, if the merchant can use the currency. Otherwise it returns no row.
insert into proposal (kind, merchant_id, currency, signed_units, reason, ext_user_id, proposed_by, proposed_ms, proposer_eligible_ms,
                      expires_ms)
select 'adjustment', m.merchant_id, %(currency)s::text, %(signed_units)s::bigint, %(reason)s::text, %(ext_user_id)s::text,
       %(proposed_by)s::text, %(proposed_ms)s::bigint, %(proposer_eligible_ms)s::bigint, %(expires_ms)s::bigint
  from merchant m
 where m.merchant_id = %(merchant_id)s::bigint
   and (%(currency)s::text = 'USDT' or m.currency_mode = 'KFB' or %(signed_units)s::bigint < 0)
returning merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
          decided_ms, outcome, entry_id, expires_ms;

-- name: read_proposal
-- One proposal. Its number alone is unique, so the merchant is not needed.
select merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
       decided_ms, outcome, entry_id, expires_ms
  from proposal where proposal_no = %(proposal_no)s::bigint and kind = 'adjustment';

-- name: lock_proposal
-- One proposal under its lock. If two processes decide it or carry it out at once, the second waits and sees the first's
-- result.
select merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
       decided_ms, outcome, entry_id, expires_ms
  from proposal where proposal_no = %(proposal_no)s::bigint and kind = 'adjustment' for update;

-- name: decide
-- Decides an open proposal, once.
update proposal
   set state = %(state)s::text, decided_by = %(decided_by)s::text, decided_ms = %(decided_ms)s::bigint, outcome = %(outcome)s::text,
       decider_eligible_ms = %(decider_eligible_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and proposal_no = %(proposal_no)s::bigint and state = 'open'
returning merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
          decided_ms, outcome, entry_id, expires_ms;

-- name: note_entry
-- Stores the book's entry. It replaces any earlier answer, since the book is right.
update proposal set state = 'accepted', entry_id = %(entry_id)s::bigint, outcome = null
 where merchant_id = %(merchant_id)s::bigint and proposal_no = %(proposal_no)s::bigint and state in ('accepted', 'failed')
   and entry_id is null
returning proposal_no;

-- name: note_refusal
-- Stores the book's refusal, unless the book has made the entry.
update proposal set state = 'failed', outcome = %(outcome)s::text
 where merchant_id = %(merchant_id)s::bigint and proposal_no = %(proposal_no)s::bigint and state = 'accepted' and entry_id is null
returning proposal_no;

-- name: list_open
-- Proposals that wait for a decision, oldest first, of one merchant or all.
select merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
       decided_ms, outcome, entry_id, expires_ms
  from proposal
 where kind = 'adjustment' and state = 'open' and proposal_no > %(after_no)s::bigint
   and (expires_ms is null or expires_ms >= %(now_ms)s::bigint)
   and (%(merchant_id)s::bigint is null or merchant_id = %(merchant_id)s::bigint)
 order by proposal_no limit %(page)s;

-- name: list_unfinished
-- Accepted proposals without the book's answer, oldest first.
select merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
       decided_ms, outcome, entry_id, expires_ms
  from proposal where kind = 'adjustment' and state = 'accepted' and entry_id is null and decided_ms < %(before_ms)s::bigint
 order by proposal_no limit %(page)s;

-- name: list_decided
-- Proposals that were decided or have expired, newest first, of all merchants.
select merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
       decided_ms, outcome, entry_id, expires_ms
  from proposal
 where kind = 'adjustment' and (state <> 'open' or expires_ms < %(now_ms)s::bigint) and proposal_no < %(before_no)s::bigint
 order by proposal_no desc limit %(page)s;

-- name: list_decided_of_merchant
-- The same of one merchant.
select merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
       decided_ms, outcome, entry_id, expires_ms
  from proposal
 where merchant_id = %(merchant_id)s::bigint and kind = 'adjustment' and (state <> 'open' or expires_ms < %(now_ms)s::bigint)
   and proposal_no < %(before_no)s::bigint
 order by proposal_no desc limit %(page)s;
