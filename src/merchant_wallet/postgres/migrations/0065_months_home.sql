-- kind: expand
-- Closed months: the reports that two people have accepted, signed, and the invoices of fees.

-- One row for each month that was prepared. `figures` is the report of all books together, and `digest` covers it and the digests of
-- all books. A month is prepared, then accepted by two people (in the sandbox by one), then signed.
create table if not exists month_report (
    month text primary key check (month ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'),
    figures text not null,
    books int not null check (books >= 0),
    digest bytea not null check (length(digest) = 32),
    prepared_ms bigint not null,
    problem text check (problem <> ''),
    accepted_ms bigint,
    proposal_no bigint references proposal (proposal_no),
    lone_actor text check (lone_actor <> ''),
    closed_ms bigint,
    manifest text,
    signature text,
    constraint month_report_accepted check (
        (accepted_ms is null and proposal_no is null and lone_actor is null)
        or (accepted_ms is not null and (proposal_no is null) <> (lone_actor is null))),
    constraint month_report_closed check (
        (closed_ms is null and manifest is null and signature is null)
        or (closed_ms is not null and manifest is not null and signature is not null and accepted_ms is not null))
);

-- The report of each book in a month.
create table if not exists month_book (
    merchant_id bigint not null,
    month text not null references month_report (month),
    figures text not null,
    digest bytea not null check (length(digest) = 32),
    primary key (merchant_id, month)
);
alter table month_book alter column merchant_id set (n_distinct = 1);
create index if not exists month_book_month on month_book (month, merchant_id);

-- Invoices of fees, numbered by year without gaps: each names the one before it.
create table if not exists invoice (
    year int not null check (year between 1970 and 9999),
    number int not null check (number > 0),
    previous_number int,
    merchant_id bigint not null,
    month text not null references month_report (month),
    merchant_name text not null,
    issuer text not null,
    lines text not null,
    issued_ms bigint not null,
    primary key (year, number),
    unique (merchant_id, month),
    foreign key (year, previous_number) references invoice (year, number),
    constraint invoice_follows check (
        (number = 1 and previous_number is null) or (previous_number is not null and previous_number = number - 1))
);
create index if not exists invoice_month on invoice (month, number);
