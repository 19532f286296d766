-- kind: expand
-- A closed month can be restated. Its next version is prepared, closed and signed as the first one was, and the first one is kept.

-- step: transaction
-- `restate_ms`: two people have decided that the month, which is closed, gets another version. A worker prepares it.
alter table month_report add column if not exists version int not null default 1;
alter table month_report add column if not exists restate_ms bigint;
alter table month_report add column if not exists restate_reason text;
-- squawk-ignore ban-drop-constraint
alter table month_report drop constraint if exists month_report_restate;
alter table month_report add constraint month_report_restate check (
    version > 0 and (restate_ms is null) = (restate_reason is null) and (restate_ms is null or closed_ms is not null)) not valid;
-- An invoice of a later version has what the earlier ones of its month do not ask for, or asks for less.
alter table invoice add column if not exists version int not null default 1;

-- The versions that are in force no more. Rows are only inserted.
create table if not exists superseded_month (
    month text not null references month_report (month),
    version int not null check (version > 0),
    figures text not null,
    books int not null check (books >= 0),
    digest bytea not null check (length(digest) = 32),
    prepared_ms bigint not null,
    accepted_ms bigint not null,
    proposal_no bigint references proposal (proposal_no),
    lone_actor text check (lone_actor <> ''),
    closed_ms bigint not null,
    manifest text not null,
    signature text not null,
    restate_ms bigint not null,
    restate_reason text not null check (restate_reason <> ''),
    primary key (month, version),
    constraint superseded_month_accepted check ((proposal_no is null) <> (lone_actor is null))
);

-- Their books.
create table if not exists superseded_book (
    merchant_id bigint not null,
    month text not null,
    version int not null,
    figures text not null,
    digest bytea not null check (length(digest) = 32),
    primary key (merchant_id, month, version),
    foreign key (month, version) references superseded_month (month, version)
);
alter table superseded_book alter column merchant_id set (n_distinct = 1);
create index if not exists superseded_book_month on superseded_book (month, version, merchant_id);

-- step: transaction
alter table month_report validate constraint month_report_restate;

-- step: concurrently
-- One invoice for each book and version of a month.
create unique index concurrently if not exists invoice_of_version on invoice (merchant_id, month, version);

-- step: transaction
-- squawk-ignore ban-drop-constraint
alter table invoice drop constraint if exists invoice_merchant_id_month_key;
