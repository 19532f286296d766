-- When an operator's word does not count: for a while after the account was made, reset, enabled, given more rights, or
-- got its second factor. Rows are only inserted: verification compares approvals with them for ever.
-- Rule: `person` is the name in lower case, as `person_of` gives it for an actor.
create table operator_wait (
    person text not null check (person <> '' and person = lower(person collate "C")),
    from_ms bigint not null,
    until_ms bigint not null,
    cause text not null check (cause in ('created', 'reset', 'enabled', 'role', 'enrolled')),
    primary key (person, from_ms, cause),
    constraint operator_wait_time check (until_ms > from_ms)
);

-- When the first of two people approved, and from when each person's word counted, as the rule judged it.
alter table withdrawal
    add column first_approved_ms bigint,
    add column first_counts_ms bigint,
    add column approved_counts_ms bigint,
    add constraint withdrawal_first_moment check (first_approved_ms is null or first_approved_by is not null),
    add constraint withdrawal_first_counts check (
        first_counts_ms is null or (first_approved_ms is not null and first_approved_ms >= first_counts_ms)),
    add constraint withdrawal_approved_counts check (
        approved_counts_ms is null or (approved_ms is not null and approved_ms >= approved_counts_ms));
