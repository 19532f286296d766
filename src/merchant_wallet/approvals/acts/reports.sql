-- What workers report, in home. `reports.py` runs these.

-- name: store
-- The newest report about a thing.
insert into worker_report (topic, subject, report, worker, reported_ms)
values (%(topic)s::text, %(subject)s::text, %(report)s::jsonb, %(worker)s::text, %(now_ms)s::bigint)
    on conflict (topic, subject) do update
   set report = excluded.report, worker = excluded.worker, reported_ms = excluded.reported_ms
 where worker_report.reported_ms <= excluded.reported_ms;

-- name: drop_others
-- A topic's things that are no longer in the settings.
delete from worker_report where topic = %(topic)s::text and subject <> all(%(subjects)s::text[]);

-- name: list
-- All reports.
select topic, subject, report, worker, reported_ms from worker_report order by topic, subject;
