-- Months in home: prepared, accepted, closed.

-- fragment: month
-- A month, with the two people of its proposal.
r.month, r.version, r.figures, r.books, r.digest, r.prepared_ms, r.accepted_ms, r.proposal_no,
       coalesce(p.proposed_by, r.lone_actor) as proposed_by, coalesce(p.decided_by, r.lone_actor) as accepted_by,
       r.closed_ms, r.manifest, r.signature, r.restate_ms, r.restate_reason

-- name: read_month
-- One month: the version in force, or the one that is being made.
select {month}, r.problem
  from month_report r left join proposal p on p.proposal_no = r.proposal_no
 where r.month = %(month)s::text;

-- name: list_superseded
-- The versions of a month that another one has replaced, newest first.
select {month}, null as problem, true as is_superseded
  from superseded_month r left join proposal p on p.proposal_no = r.proposal_no
 where r.month = %(month)s::text order by r.version desc;

-- name: list_months
-- Months before one, newest first.
select {month}, r.problem
  from month_report r left join proposal p on p.proposal_no = r.proposal_no
 where r.month < %(before)s::text order by r.month desc limit %(page)s::int;

-- name: lock_month
-- A month's state under its lock.
select digest, accepted_ms, problem from month_report where month = %(month)s::text for update;

-- name: list_merchants
-- Every merchant, to find a book that is nowhere open.
select merchant_id from merchant order by merchant_id;

-- name: put_month
-- A prepared month. One that somebody has accepted stays as it is.
insert into month_report as r (month, figures, books, digest, prepared_ms, problem)
values (%(month)s::text, %(figures)s::text, %(books)s::int, %(digest)s::bytea, %(prepared_ms)s::bigint, %(problem)s::text)
on conflict (month) do update
   set figures = excluded.figures, books = excluded.books, digest = excluded.digest, prepared_ms = excluded.prepared_ms,
       problem = excluded.problem
 where r.accepted_ms is null
returning month;

-- name: put_books
-- The reports of some books in a month.
insert into month_book as b (merchant_id, month, figures, digest)
select u.merchant_id, %(month)s::text, u.figures, u.digest
  from unnest(%(merchant_ids)s::bigint[], %(figures)s::text[], %(digests)s::bytea[]) u (merchant_id, figures, digest)
 order by u.merchant_id
on conflict (merchant_id, month) do update set figures = excluded.figures, digest = excluded.digest;

-- name: withdraw_acceptance
-- Why a month that was accepted can't be signed. Two people must accept it anew, when it was prepared again.
update month_report set problem = %(problem)s::text, accepted_ms = null, proposal_no = null, lone_actor = null
 where month = %(month)s::text and closed_ms is null;

-- name: accept_month
-- Two people have accepted the month, or one in the sandbox.
update month_report
   set accepted_ms = %(at_ms)s::bigint, proposal_no = %(proposal_no)s::bigint, lone_actor = %(lone_actor)s::text
 where month = %(month)s::text and accepted_ms is null
returning month;

-- name: list_closings
-- The reports of some books in a month.
select merchant_id, figures from month_book
 where month = %(month)s::text and merchant_id = any (%(merchant_ids)s::bigint[]);

-- name: find_open
-- The first month before another one that nobody has accepted.
select month from month_report where month < %(month)s::text and accepted_ms is null order by month limit 1;

-- name: find_earlier_unsigned
-- A month before one that is not signed, or gets another version.
select month from month_report
 where month < %(month)s::text and (closed_ms is null or restate_ms is not null) order by month limit 1;

-- name: list_accepted
-- Accepted months that are not signed, oldest first.
select month from month_report where accepted_ms is not null and closed_ms is null and problem is null order by month;

-- name: list_waiting
-- Months that nobody has proposed to close, or that do not add up, oldest first.
select r.month, r.prepared_ms, r.problem is not null as is_wrong
  from month_report r
 where r.accepted_ms is null
   and not exists (select from proposal p where p.state = 'open' and p.kind = 'month.close' and p.subject = 'month ' || r.month
                      and (p.expires_ms is null or p.expires_ms >= %(at_ms)s::bigint))
 order by r.month limit %(most)s::int;

-- name: find_previous
-- The closed month before one.
select month, digest, manifest from month_report where month < %(month)s::text and closed_ms is not null order by month desc limit 1;

-- name: close_month
-- The month is signed.
update month_report set closed_ms = %(closed_ms)s::bigint, manifest = %(manifest)s::text, signature = %(signature)s::text
 where month = %(month)s::text and closed_ms is null;

-- name: lock_from
-- The months from one on, under their locks, oldest first. One that is being signed now is waited for.
select month, digest, closed_ms, restate_ms from month_report where month >= %(month)s::text order by month for update;

-- name: restate_from
-- Two people have decided that the closed months from one on get another version.
update month_report set restate_ms = %(at_ms)s::bigint, restate_reason = %(reason)s::text
 where month >= %(month)s::text and closed_ms is not null and restate_ms is null;

-- name: find_restated
-- The first month whose next version is to be prepared.
select month from month_report where restate_ms is not null order by month limit 1;

-- name: find_outdated
-- The first open month that was prepared before the present version of an earlier one.
select r.month from month_report r
 where r.accepted_ms is null
   and exists (select from month_report e where e.month < r.month and e.prepared_ms > r.prepared_ms)
 order by r.month limit 1;

-- name: keep_superseded
-- Keep the version that was in force.
insert into superseded_month (month, version, figures, books, digest, prepared_ms, accepted_ms, proposal_no, lone_actor, closed_ms,
                              manifest, signature, restate_ms, restate_reason)
select month, version, figures, books, digest, prepared_ms, accepted_ms, proposal_no, lone_actor, closed_ms,
       manifest, signature, restate_ms, restate_reason
  from month_report where month = %(month)s::text;

-- name: keep_superseded_books
-- Keep its books.
insert into superseded_book (merchant_id, month, version, figures, digest)
select b.merchant_id, b.month, r.version, b.figures, b.digest
  from month_book b join month_report r on r.month = b.month
 where b.month = %(month)s::text order by b.merchant_id;

-- name: delete_books
-- They are kept as those of the former version.
delete from month_book where month = %(month)s::text;

-- name: begin_version
-- The month's next version, which nobody has accepted.
update month_report
   set version = version + 1, accepted_ms = null, proposal_no = null, lone_actor = null, closed_ms = null, manifest = null,
       signature = null, restate_ms = null, restate_reason = null
 where month = %(month)s::text;

-- name: page_superseded_books
-- As page_books, of a version that another one has replaced.
select b.merchant_id, m.name, m.billing_address, m.tax_id, b.figures, b.digest
  from superseded_book b join merchant m on m.merchant_id = b.merchant_id
 where b.month = %(month)s::text and b.version = %(version)s::int and b.merchant_id > %(after)s::bigint
 order by b.merchant_id limit %(page)s::int;

-- name: read_superseded_book
-- One book of a version that another one has replaced.
select figures from superseded_book
 where merchant_id = %(merchant_id)s::bigint and month = %(month)s::text and version = %(version)s::int;

-- name: page_books
-- The books of a month, with what invoices say of their merchants.
select b.merchant_id, m.name, m.billing_address, m.tax_id, b.figures, b.digest
  from month_book b join merchant m on m.merchant_id = b.merchant_id
 where b.month = %(month)s::text and b.merchant_id > %(after)s::bigint order by b.merchant_id limit %(page)s::int;
