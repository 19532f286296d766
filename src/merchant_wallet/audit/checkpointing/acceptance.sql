-- A person accepts a rollback.

-- name: add_acceptance
-- Who accepted, why, and up to when the signer's record was accepted.
insert into rollback_acceptance (accepted_ms, actor, reason, signed_upto_ms)
values (%(accepted_ms)s::bigint, %(actor)s::text, %(reason)s::text, %(signed_upto_ms)s::bigint);

-- name: clear_evidence
-- Removes all evidence, so that payouts continue.
delete from rollback_evidence;
