-- Proposals of adjustments. `proposals.py` runs these; every change names the state it was decided on.

-- name: lock_proposing
-- One person at a time proposes an adjustment of a merchant's book.
select pg_advisory_xact_lock(hashtext('proposal'), hashtext('adjustment ' || %(merchant_id)s::bigint));

-- name: find_same_open
-- A proposal of the same adjustment that can still be accepted.
select merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
       decided_ms, outcome, entry_id, expires_ms
  from proposal
 where kind = 'adjustment' and state = 'open' and merchant_id = %(merchant_id)s::bigint and currency = %(currency)s::text
   and signed_units = %(signed_units)s::bigint and reason = %(reason)s::text
   and ext_user_id is not distinct from %(ext_user_id)s::text
   and (expires_ms is null or expires_ms >= %(proposed_ms)s::bigint)
 limit 1;

-- name: insert_proposal
-- A proposal to a merchant that can use the currency; no row for any other.
insert into proposal (kind, merchant_id, currency, signed_units, reason, ext_user_id, proposed_by, proposed_ms, proposer_from_ms,
                      expires_ms)
select 'adjustment', m.merchant_id, %(currency)s::text, %(signed_units)s::bigint, %(reason)s::text, %(ext_user_id)s::text,
       %(proposed_by)s::text, %(proposed_ms)s::bigint, %(proposer_from_ms)s::bigint, %(expires_ms)s::bigint
  from merchant m
 where m.merchant_id = %(merchant_id)s::bigint
   and (%(currency)s::text = 'USDT' or m.currency_mode = 'KFB' or %(signed_units)s::bigint < 0)
returning merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
          decided_ms, outcome, entry_id, expires_ms;

-- name: read_proposal
-- One proposal; its number alone is unique, for whoever was told nothing else.
select merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
       decided_ms, outcome, entry_id, expires_ms
  from proposal where proposal_no = %(proposal_no)s::bigint and kind = 'adjustment';

-- name: lock_proposal
-- The same under its lock: of two who decide or carry it out at once, one waits and sees what the other did.
select merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
       decided_ms, outcome, entry_id, expires_ms
  from proposal where proposal_no = %(proposal_no)s::bigint and kind = 'adjustment' for update;

-- name: decide
-- An open proposal is decided, once.
update proposal
   set state = %(state)s::text, decided_by = %(decided_by)s::text, decided_ms = %(decided_ms)s::bigint, outcome = %(outcome)s::text,
       decider_from_ms = %(decider_from_ms)s::bigint
 where merchant_id = %(merchant_id)s::bigint and proposal_no = %(proposal_no)s::bigint and state = 'open'
returning merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
          decided_ms, outcome, entry_id, expires_ms;

-- name: note_entry
-- The book's entry. It stands whatever was noted before, since the book is right.
update proposal set state = 'accepted', entry_id = %(entry_id)s::bigint, outcome = null
 where merchant_id = %(merchant_id)s::bigint and proposal_no = %(proposal_no)s::bigint and state in ('accepted', 'failed')
   and entry_id is null
returning proposal_no;

-- name: note_refusal
-- The book's no, where it has not said yes.
update proposal set state = 'failed', outcome = %(outcome)s::text
 where merchant_id = %(merchant_id)s::bigint and proposal_no = %(proposal_no)s::bigint and state = 'accepted' and entry_id is null
returning proposal_no;

-- name: list_open
-- What waits for a decision, the oldest first.
select merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
       decided_ms, outcome, entry_id, expires_ms
  from proposal
 where kind = 'adjustment' and state = 'open' and proposal_no > %(after_no)s::bigint
   and (expires_ms is null or expires_ms >= %(now_ms)s::bigint)
 order by proposal_no limit %(page)s;

-- name: list_unfinished
-- What was accepted and of which nobody knows yet what the book did, the oldest first.
select merchant_id, proposal_no, currency::text, signed_units, reason, ext_user_id, proposed_by, proposed_ms, state, decided_by,
       decided_ms, outcome, entry_id, expires_ms
  from proposal where kind = 'adjustment' and state = 'accepted' and entry_id is null and decided_ms < %(before_ms)s::bigint
 order by proposal_no limit %(page)s;

-- name: list_decided
-- What was decided, the newest first; of one merchant or, along the numbers, of all.
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
