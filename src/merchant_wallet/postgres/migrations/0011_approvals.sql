-- Two pairs of eyes: withdrawals above a merchant's second limit, and adjustments that one operator proposes and another
-- carries out. Beside them the last requests of each merchant that were refused.
-- Rules: two people are two names, by whichever door they came in (`cli:ann` is `operator:Ann`).

create function person_of(actor text) returns text language sql immutable parallel safe
    return lower(substr(actor, strpos(actor, ':') + 1) collate "C");

-- Above this two people must approve. A merchant whose orders go unasked up to more than that keeps it so.
alter table merchant add column second_approval_limit_units bigint not null default 100000000000
    check (second_approval_limit_units >= 0);
update merchant set second_approval_limit_units = approval_limit_units
 where approval_limit_units > second_approval_limit_units;

-- The limit as it was when the order was created, null for orders from before there was one; and the first of two approvals.
alter table withdrawal
    add column second_limit_units bigint check (second_limit_units >= 0),
    add column first_approved_by text check (first_approved_by <> ''),
    add constraint withdrawal_first_of_two check (
        first_approved_by is null or (second_limit_units is not null and amount > second_limit_units)),
    add constraint withdrawal_two_people check (
        first_approved_by is null or approved_by is null or person_of(first_approved_by) <> person_of(approved_by)),
    add constraint withdrawal_second_limit check (
        approved_ms is null or second_limit_units is null or amount <= second_limit_units
        or (first_approved_by is not null and approved_by is not null and approved_by <> 'limit'));

-- What one operator proposes and another decides. It is `accepted` before the book is asked, so that nobody decides it
-- again; `entry_id` is the book's answer, or else `outcome` says why it refused. Accepted with neither: nobody knows yet,
-- and asking the book again is safe, because the entry bears the proposal's number as its name.
create table proposal (
    merchant_id bigint not null references merchant,
    proposal_no bigint not null generated always as identity,
    currency currency not null,
    signed_units bigint not null check (signed_units <> 0),
    reason text not null check (length(reason) <= 500 and reason ~ '\S'),
    ext_user_id text check (length(ext_user_id) between 1 and 20),
    proposed_by text not null check (person_of(proposed_by) <> ''),
    proposed_ms bigint not null,
    state text not null default 'open' check (state in ('open', 'accepted', 'refused', 'withdrawn', 'failed')),
    decided_by text check (person_of(decided_by) <> ''),
    decided_ms bigint,
    outcome text check (outcome <> ''),
    entry_id bigint,
    primary key (merchant_id, proposal_no),
    unique (proposal_no),
    constraint proposal_decided check (
        (state = 'open') = (decided_by is null) and (decided_by is null) = (decided_ms is null) and decided_ms >= proposed_ms),
    constraint proposal_two_people check (
        state not in ('accepted', 'failed') or person_of(decided_by) <> person_of(proposed_by)),
    constraint proposal_withdrawn check (state <> 'withdrawn' or person_of(decided_by) = person_of(proposed_by)),
    constraint proposal_outcome check (
        (entry_id is null or state = 'accepted') and (outcome is null) = (state not in ('failed', 'refused')))
);
create index proposal_open on proposal (proposal_no) where state = 'open';
create index proposal_unfinished on proposal (proposal_no) where state = 'accepted' and entry_id is null;
create unique index proposal_entry on proposal (merchant_id, entry_id) where entry_id is not null;
alter table proposal alter column merchant_id set (n_distinct = 1);

-- The last requests of each merchant that were refused, for whoever writes its client. Fields are kept as they were sent,
-- in their order, but for the signature, of which the beginning is kept, and what is named like a secret, which is not.
create table refused_request (
    merchant_id bigint not null references merchant,
    refused_no bigint not null generated always as identity,
    at_ms bigint not null,
    request_id text not null,
    path text not null,
    code int not null,
    msg text not null,
    source text not null,
    content_type text not null,
    fields json not null,
    left_out text[] not null,
    primary key (merchant_id, refused_no)
);
alter table refused_request alter column merchant_id set (n_distinct = 1);
