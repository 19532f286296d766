-- What the sandbox's chains accepted. A chain knows no merchant, so there is none here.

-- name: accept_transfer
-- The first broadcast of these bytes counts. Later ones change nothing.
insert into sandbox_transfer (tx_hash, chain, token, recipient, amount_units, accepted_ms, final_ms, verdict)
values (%(tx_hash)s::text, %(chain)s::text, %(token)s::text, %(recipient)s::bytea, %(amount_units)s::bigint,
        %(accepted_ms)s::bigint, %(final_ms)s::bigint, %(verdict)s::text)
on conflict (tx_hash) do nothing;

-- name: find_transfer
-- A transfer by its hash and chain.
select tx_hash, chain, token, recipient, amount_units, accepted_ms, final_ms, verdict
  from sandbox_transfer where tx_hash = %(tx_hash)s::text and chain = %(chain)s::text;
