-- Proposed changes of every kind but adjustments. `changes.py` runs these.

-- name: insert_change
-- A new proposal.
insert into proposal (kind, subject, merchant_id, before, after, reason, proposed_by, proposed_ms, proposer_eligible_ms, expires_ms)
values (%(kind)s::text, %(subject)s::text, %(merchant_id)s::bigint, %(before)s::jsonb, %(after)s::jsonb, %(reason)s::text,
        %(proposed_by)s::text, %(proposed_ms)s::bigint, %(proposer_eligible_ms)s::bigint, %(expires_ms)s::bigint)
returning proposal_no, kind, subject, merchant_id, before, after, reason, proposed_by, proposed_ms, expires_ms, state,
          decided_by, decided_ms, outcome;

-- name: lock_proposing
-- Lets one person at a time propose something about a subject.
select pg_advisory_xact_lock(hashtext('proposal'), hashtext(%(kind)s::text || ' ' || %(subject)s::text));

-- name: find_same_open
-- An open proposal of the same change that has not expired.
select proposal_no, kind, subject, merchant_id, before, after, reason, proposed_by, proposed_ms, expires_ms, state,
       decided_by, decided_ms, outcome
  from proposal
 where state = 'open' and kind = %(kind)s::text and subject = %(subject)s::text
   and merchant_id is not distinct from %(merchant_id)s::bigint
   and before = %(before)s::jsonb and after = %(after)s::jsonb
   and (expires_ms is null or expires_ms >= %(proposed_ms)s::bigint)
 limit 1;

-- name: count_open_of_merchant
-- How many proposals of a merchant's own people wait. More of them would hide what others propose.
select count(*) from proposal
 where state = 'open' and (merchant_id = %(merchant_id)s::bigint or proposed_by = %(proposed_by)s::text)
   and starts_with(proposed_by, 'merchant:') and (expires_ms is null or expires_ms >= %(proposed_ms)s::bigint);

-- name: find_same_accepted
-- An accepted proposal that set the same value after this one was made.
select o.proposal_no, o.kind, o.subject, o.merchant_id, o.before, o.after, o.reason, o.proposed_by, o.proposed_ms,
       o.expires_ms, o.state, o.decided_by, o.decided_ms, o.outcome
  from proposal p
  join proposal o on o.kind = p.kind and o.subject = p.subject and o.merchant_id is not distinct from p.merchant_id
   and o.after = p.after and o.state = 'accepted' and o.decided_ms >= p.proposed_ms and o.proposal_no <> p.proposal_no
 where p.proposal_no = %(proposal_no)s::bigint
 limit 1;

-- name: read_change
-- One proposal by its number.
select proposal_no, kind, subject, merchant_id, before, after, reason, proposed_by, proposed_ms, expires_ms, state,
       decided_by, decided_ms, outcome
  from proposal where proposal_no = %(proposal_no)s::bigint and kind <> 'adjustment';

-- name: lock_change
-- One proposal under its lock. If two people decide at once, the second sees the first decision.
select proposal_no, kind, subject, merchant_id, before, after, reason, proposed_by, proposed_ms, expires_ms, state,
       decided_by, decided_ms, outcome
  from proposal where proposal_no = %(proposal_no)s::bigint and kind <> 'adjustment' for update;

-- name: decide_change
-- Decides an open proposal.
update proposal
   set state = %(state)s::text, decided_by = %(decided_by)s::text, decided_ms = %(decided_ms)s::bigint,
       decider_eligible_ms = %(decider_eligible_ms)s::bigint, outcome = %(outcome)s::text
 where proposal_no = %(proposal_no)s::bigint and kind <> 'adjustment' and state = 'open'
returning proposal_no, kind, subject, merchant_id, before, after, reason, proposed_by, proposed_ms, expires_ms, state,
          decided_by, decided_ms, outcome;

-- name: list_open_changes
-- Proposals that wait for a second person, oldest first: all, or those of one kind and subject.
select proposal_no, kind, subject, merchant_id, before, after, reason, proposed_by, proposed_ms, expires_ms, state,
       decided_by, decided_ms, outcome
  from proposal
 where state = 'open' and kind <> 'adjustment' and (expires_ms is null or expires_ms >= %(at_ms)s::bigint)
   and (%(kind)s::text is null or kind = %(kind)s::text) and (%(subject)s::text is null or subject = %(subject)s::text)
 order by proposal_no limit %(page)s;

-- name: list_decided_changes
-- Proposals that were decided or have expired, newest first.
select proposal_no, kind, subject, merchant_id, before, after, reason, proposed_by, proposed_ms, expires_ms, state,
       decided_by, decided_ms, outcome
  from proposal
 where kind <> 'adjustment' and (state <> 'open' or expires_ms < %(at_ms)s::bigint) and proposal_no < %(before_no)s::bigint
 order by proposal_no desc limit %(page)s;
