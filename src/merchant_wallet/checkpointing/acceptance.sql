-- A person's word on a rollback.

-- name: add_acceptance
-- Who accepted, why, and what the signer had recorded by then.
insert into rollback_acceptance (accepted_ms, actor, reason, signed_upto_ms)
values (%(accepted_ms)s::bigint, %(actor)s::text, %(reason)s::text, %(signed_upto_ms)s::bigint);

-- name: clear_signs
-- Payouts go on.
delete from rollback_sign;
