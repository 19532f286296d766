-- The signs of a rollback. They belong to the whole database; there are none in ordinary times.

-- name: list_signs
-- All that stand, the oldest first.
select merchant_id, subject, kind, cause, since_ms from rollback_sign order by since_ms, merchant_id, subject;

-- name: is_standing
-- Whether anything stops payouts.
select exists (select from rollback_sign);

-- name: record_sign
-- One more; the first cause of a subject stays until it is accepted.
insert into rollback_sign (merchant_id, subject, kind, cause, since_ms)
values (%(merchant_id)s::bigint, %(subject)s::text, %(kind)s::text, %(cause)s::text, %(since_ms)s::bigint)
on conflict (merchant_id, subject) do nothing;

-- name: lock_signs
-- One at a time writes signs or accepts them; reading goes on. LOCK TABLE would take the right to delete signs.
select pg_advisory_xact_lock(hashtext('rollback_sign'));
