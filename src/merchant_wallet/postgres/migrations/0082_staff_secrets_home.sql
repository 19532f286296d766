-- kind: expand
-- Secrets of merchants that the platform's people made, and what each of them has approved.

-- Who knows a merchant's secret can order in its name. So the approvals of that person do not count for this merchant's orders until
-- `eligible_ms`. Rows are only inserted: the payer and verification compare approvals with them for ever.
-- Rule: `person` is the name in lower case, as `person_of` gives it for an actor.
create table if not exists staff_secret (
    merchant_id bigint not null references merchant,
    made_ms bigint not null,
    key_no int not null,
    person text not null constraint staff_secret_person check (person <> '' and person = lower(person collate "C")),
    eligible_ms bigint not null,
    primary key (merchant_id, made_ms, key_no, person),
    constraint staff_secret_time check (eligible_ms >= made_ms)
);

-- How much each person has approved on a UTC day, over all merchants. The row is locked while a book is asked.
create table if not exists approved_sum (
    person text not null constraint approved_sum_person check (person <> '' and person = lower(person collate "C")),
    day bigint not null,
    units bigint not null constraint approved_sum_units check (units > 0),
    primary key (person, day)
);
