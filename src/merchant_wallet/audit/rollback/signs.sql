-- Rollback signs. They concern the whole database. Normally there are none.

-- name: list_signs
-- All open signs, oldest first.
select merchant_id, subject, kind, cause, since_ms from rollback_sign order by since_ms, merchant_id, subject;

-- name: has_open_sign
-- Whether any sign is open, which stops payouts.
select exists (select from rollback_sign);

-- name: record_sign
-- Adds a sign. The first cause of a subject is kept until it is accepted.
insert into rollback_sign (merchant_id, subject, kind, cause, since_ms)
values (%(merchant_id)s::bigint, %(subject)s::text, %(kind)s::text, %(cause)s::text, %(since_ms)s::bigint)
on conflict (merchant_id, subject) do nothing;

-- name: lock_signs
-- Lets one process at a time write or accept signs; readers are not blocked. LOCK TABLE would need the right to delete signs.
select pg_advisory_xact_lock(hashtext('rollback_sign'));
