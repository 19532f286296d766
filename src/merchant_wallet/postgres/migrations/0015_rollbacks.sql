-- What shows that this database is older than it once was, or not the one it was: a restored back-up, a stand-by that
-- lagged, a rewritten journal. While a sign stands nothing is paid.

-- The comparison of checkpoints and signer's record with the database writes signs; a person accepts them.
create table rollback_sign (
    merchant_id bigint not null check (merchant_id >= 0),
    subject text not null check (subject in ('book', 'audit', 'signer', 'key')),
    kind text not null check (kind in ('behind', 'diverged', 'unreadable')),
    cause text not null check (cause <> ''),
    since_ms bigint not null,
    primary key (merchant_id, subject),
    constraint rollback_sign_of_book check ((merchant_id > 0) = (subject = 'book'))
);

-- Each time that a person said what had happened. What the signer recorded up to `signed_upto_ms` is known since then.
create table rollback_acceptance (
    acceptance_no bigint primary key generated always as identity,
    accepted_ms bigint not null,
    actor text not null check (actor <> ''),
    reason text not null check (reason ~ '\S'),
    signed_upto_ms bigint not null
);
