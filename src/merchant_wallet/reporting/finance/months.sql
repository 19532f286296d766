-- Months in home: prepared, accepted, closed.

-- name: read_month
-- One month, with the two people of its proposal.
select r.month, r.figures, r.books, r.digest, r.prepared_ms, r.problem, r.accepted_ms, r.proposal_no,
       coalesce(p.proposed_by, r.lone_actor) as proposed_by, coalesce(p.decided_by, r.lone_actor) as accepted_by,
       r.closed_ms, r.manifest, r.signature
  from month_report r left join proposal p on p.proposal_no = r.proposal_no
 where r.month = %(month)s::text;

-- name: list_months
-- Months before one, newest first.
select r.month, r.figures, r.books, r.digest, r.prepared_ms, r.problem, r.accepted_ms, r.proposal_no,
       coalesce(p.proposed_by, r.lone_actor) as proposed_by, coalesce(p.decided_by, r.lone_actor) as accepted_by,
       r.closed_ms, r.manifest, r.signature
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

-- name: find_earlier_open
-- A month before one that nobody has accepted.
select month from month_report where month < %(month)s::text and accepted_ms is null order by month limit 1;

-- name: find_earlier_unsigned
-- A month before one that is not signed.
select month from month_report where month < %(month)s::text and closed_ms is null order by month limit 1;

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

-- name: page_books
-- The books of a month, with their merchants' names.
select b.merchant_id, m.name, b.figures, b.digest
  from month_book b join merchant m on m.merchant_id = b.merchant_id
 where b.month = %(month)s::text and b.merchant_id > %(after)s::bigint order by b.merchant_id limit %(page)s::int;

-- name: read_book
-- One book of a month.
select b.figures, b.digest, r.closed_ms from month_book b join month_report r on r.month = b.month
 where b.merchant_id = %(merchant_id)s::bigint and b.month = %(month)s::text;
