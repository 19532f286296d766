-- Failed sign-ins. `failures.py` runs these.

-- name: count_failure
-- Counts one failure in its minute. When the minute has many rows already, further sources share one row.
insert into failed_sign_in as f (merchant_id, minute_ms, subject, factor, source, failures, last_ms)
select %(merchant_id)s::bigint, %(minute_ms)s::bigint, %(subject)s::text, %(factor)s::text,
       case when exists (select 1 from failed_sign_in x
                          where x.merchant_id = %(merchant_id)s::bigint and x.minute_ms = %(minute_ms)s::bigint
                            and x.subject = %(subject)s::text and x.factor = %(factor)s::text and x.source = %(source)s::text)
              or (select count(*) from failed_sign_in x where x.minute_ms = %(minute_ms)s::bigint) < %(most)s::int
            then %(source)s::text else 'many' end,
       1, %(at_ms)s::bigint
on conflict (merchant_id, minute_ms, subject, factor, source) do update
   set failures = least(f.failures + 1, 2000000000), last_ms = greatest(f.last_ms, excluded.last_ms)
returning failures;

-- name: take_unlogged
-- Failures of past minutes that the audit log does not have yet. Two workers that take them at the same time get different
-- rows.
select merchant_id, minute_ms, subject, factor, source, failures, last_ms from failed_sign_in
 where audit_no is null and minute_ms < %(before_ms)s::bigint
 order by minute_ms, merchant_id, subject, factor, source limit %(limit)s::int for update skip locked;

-- name: note_logged
-- Marks a row as written to the audit log.
update failed_sign_in set audit_no = %(audit_no)s::bigint
 where merchant_id = %(merchant_id)s::bigint and minute_ms = %(minute_ms)s::bigint and subject = %(subject)s::text
   and factor = %(factor)s::text and source = %(source)s::text;

-- name: read_since
-- How often a sign-in as this subject failed since a time, and the last one.
select sum(failures) over (), last_ms, source, factor from failed_sign_in
 where merchant_id = %(merchant_id)s::bigint and subject = %(subject)s::text and last_ms > %(since_ms)s::bigint
 order by last_ms desc, minute_ms desc limit 1;

-- name: count_recent
-- Failures by factor since a time, for the metrics.
select factor, sum(failures) from failed_sign_in where minute_ms >= %(since_ms)s::bigint group by factor;

-- name: drop_old
-- Rows that are in the audit log and are too old to be shown.
delete from failed_sign_in where (merchant_id, minute_ms, subject, factor, source) in (
    select merchant_id, minute_ms, subject, factor, source from failed_sign_in
     where audit_no is not null and minute_ms < %(before_ms)s::bigint limit 500 for update skip locked);

-- name: note_seen
-- Notes how many failures of a day somebody has seen, and never more than there are. A smaller number changes nothing.
insert into failed_sign_in_seen as s (merchant_id, subject, day, failures, seen_by, seen_ms)
select %(merchant_id)s::bigint, %(subject)s::text, %(day)s::bigint, least(%(failures)s::bigint, f.failures), %(seen_by)s::text,
       %(at_ms)s::bigint
  from (select sum(failures) as failures from failed_sign_in
         where merchant_id = %(merchant_id)s::bigint and subject = %(subject)s::text
           and minute_ms >= %(from_ms)s::bigint and minute_ms < %(until_ms)s::bigint) f
 where least(%(failures)s::bigint, f.failures) > 0 and f.failures is not null
on conflict (merchant_id, subject, day) do update
   set failures = excluded.failures, seen_by = excluded.seen_by, seen_ms = excluded.seen_ms
 where s.failures < excluded.failures
returning failures;

-- name: drop_old_seen
-- What was seen of days whose failures are not kept any more.
delete from failed_sign_in_seen where day < %(before_day)s::bigint;
