-- Test events. `test_events.py` runs these.

-- name: lock_requests
-- One request of a merchant at a time, so that each gets a number of its own.
select pg_advisory_xact_lock(hashtext('test_event'), hashtext(%(merchant_id)s::bigint::text));

-- name: read_last
-- The number of a merchant's last test, and how many it has asked for since a time.
select coalesce(max(event_no), 0) as last_no, count(*) filter (where requested_ms > %(since_ms)s::bigint) as recent
  from test_event where merchant_id = %(merchant_id)s::bigint;

-- name: insert_test
-- A test that waits for a worker.
insert into test_event (merchant_id, event_no, url, requested_ms, requested_by)
values (%(merchant_id)s::bigint, %(event_no)s::int, %(url)s::text, %(at_ms)s::bigint, %(requested_by)s::text);

-- name: trim_tests
-- Deletes a merchant's oldest tests.
delete from test_event where merchant_id = %(merchant_id)s::bigint and event_no <= %(oldest_no)s::int;

-- name: list_tests
-- A merchant's last tests, newest first.
select event_no, url, requested_ms, requested_by, claimed_ms, ended_ms, address, http_status, error, answer, latency_ms
  from test_event where merchant_id = %(merchant_id)s::bigint order by event_no desc limit %(limit)s::int;

-- name: claim
-- Takes the tests that wait. A test is sent once: if the worker ends meanwhile, people ask for another one.
update test_event t set claimed_ms = %(now_ms)s::bigint
  from (select w.merchant_id, w.event_no from test_event w where w.claimed_ms is null
         order by w.requested_ms limit %(limit)s::int for update skip locked) mine
 where t.merchant_id = mine.merchant_id and t.event_no = mine.event_no
returning t.merchant_id, t.event_no, t.url, t.requested_ms;

-- name: record
-- What a test was answered.
update test_event
   set ended_ms = %(now_ms)s::bigint, address = %(address)s::text, http_status = %(http_status)s::smallint,
       error = %(error)s::text, answer = %(answer)s::bytea, latency_ms = %(latency_ms)s::int
 where merchant_id = %(merchant_id)s::bigint and event_no = %(event_no)s::int;
