-- Failed sign-ins, counted by minute: who was tried, with which factor, from which source address.
-- Rules: `subject` names an operator or sub-user that exists, or says that nobody has the name. What was typed is never
-- kept. `merchant_id` is 0 for the platform's own people. A minute has a bounded number of rows. When it is over, each row becomes one entry of the audit log.
create table failed_sign_in (
    merchant_id bigint not null,
    minute_ms bigint not null,
    subject text not null check (length(subject) between 1 and 400),
    factor text not null check (factor in ('password', 'code', 'recovery code', 'pin')),
    source text not null check (length(source) between 1 and 64),
    failures int not null check (failures > 0),
    last_ms bigint not null,
    audit_no bigint,
    primary key (merchant_id, minute_ms, subject, factor, source)
);
create index failed_sign_in_subject on failed_sign_in (merchant_id, subject, last_ms);
create index failed_sign_in_minute on failed_sign_in (minute_ms);
create index failed_sign_in_unlogged on failed_sign_in (minute_ms) where audit_no is null;

-- When each operator was last through with both factors: failures since then are shown at the next sign-in.
alter table operator add column signed_in_ms bigint;
