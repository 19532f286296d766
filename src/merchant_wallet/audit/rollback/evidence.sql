-- Evidence of a rollback. It concerns the whole database. Normally there is none.

-- name: list_evidence
-- All open evidence, oldest first.
select merchant_id, subject, kind, cause, since_ms from rollback_evidence order by since_ms, merchant_id, subject;

-- name: has_open_evidence
-- Whether any evidence is open, which stops payouts.
select exists (select from rollback_evidence);

-- name: record_evidence
-- Adds evidence. The first cause of a subject is kept until it is accepted.
insert into rollback_evidence (merchant_id, subject, kind, cause, since_ms)
values (%(merchant_id)s::bigint, %(subject)s::text, %(kind)s::text, %(cause)s::text, %(since_ms)s::bigint)
on conflict (merchant_id, subject) do nothing;

-- name: lock_evidence
-- Lets one process at a time write or accept evidence; readers are not blocked. LOCK TABLE would need the right to delete.
select pg_advisory_xact_lock(hashtext('rollback_evidence'));
