-- From which addresses each operator has signed in with both factors: there, what others fail under his name from
-- elsewhere makes him wait no more. `key` is made of the hashes of name and address, as the failures' keys are.
create table operator_known_source (
    key bytea primary key check (length(key) = 32),
    operator_id bigint not null references operator,
    seen_ms bigint not null
);
create index operator_known_source_operator on operator_known_source (operator_id, seen_ms);
