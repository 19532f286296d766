-- kind: expand
-- Who has seen how many failed sign-ins of a day. The inbox leaves these out, and shows the day again when more fail.

create table if not exists failed_sign_in_seen (
    merchant_id bigint not null,
    subject text not null constraint failed_sign_in_seen_subject check (length(subject) between 1 and 400),
    day bigint not null,
    failures bigint not null constraint failed_sign_in_seen_failures check (failures > 0),
    seen_by text not null,
    seen_ms bigint not null,
    primary key (merchant_id, subject, day)
);
