-- Who may work at the platform, how they prove it, and the log of everything they change.
-- Rules: operators are few and belong to no book, so their keys are their own. No password, second factor, recovery code
-- or session is kept in a form that could be used. The audit log is only inserted into.

-- `totp_sealed` is the second factor, sealed under the master key; it counts once `totp_confirmed_ms` says that a code of
-- it was shown. `totp_last_step` is the last 30 seconds whose code was taken: none is taken twice.
create table operator (
    operator_id bigint primary key generated always as identity,
    name text not null check (name ~ '^[A-Za-z0-9._@-]{1,64}$'),
    role text not null check (role in ('owner', 'operator', 'auditor', 'merchant')),
    merchant_id bigint references merchant,
    status text not null default 'active' check (status in ('active', 'disabled')),
    password_hash text not null check (starts_with(password_hash, '$argon2id$')),
    totp_sealed bytea,
    totp_confirmed_ms bigint,
    totp_last_step bigint,
    language text check (language in ('en', 'zh-CN')),
    theme text check (theme in ('light', 'dark')),
    created_ms bigint not null,
    constraint operator_of_merchant check ((role = 'merchant') = (merchant_id is not null)),
    constraint operator_confirmed check (totp_confirmed_ms is null or (totp_sealed is not null and totp_last_step is not null))
);
-- Two names that differ in case alone would be taken for one another.
create unique index operator_name on operator (lower(name collate "C"));
create index operator_merchant on operator (merchant_id) where merchant_id is not null;

-- What stands in for the second factor, each once. Only the SHA-256 is kept: the codes are random, of 80 bits.
create table operator_recovery_code (
    operator_id bigint not null references operator,
    code_hash bytea not null check (length(code_hash) = 32),
    used_ms bigint,
    primary key (operator_id, code_hash)
);

-- A browser that is signed in, or, until `totp_passed`, has shown the password alone.
create table operator_session (
    token_hash bytea primary key check (length(token_hash) = 32),
    operator_id bigint not null references operator,
    totp_passed boolean not null,
    created_ms bigint not null,
    seen_ms bigint not null,
    expires_ms bigint not null,
    source text not null check (length(source) between 1 and 64),
    user_agent text not null check (length(user_agent) <= 200),
    constraint operator_session_time check (created_ms <= seen_ms and created_ms < expires_ms)
);
create index operator_session_operator on operator_session (operator_id, created_ms);
create index operator_session_expiry on operator_session (expires_ms);

-- Failed attempts to sign in, by name and by source address; `key` is the SHA-256 of either, since people type passwords
-- where names belong. The next attempt is not looked at before `next_ms`.
create table operator_failure (
    key bytea primary key check (length(key) = 32),
    failures int not null check (failures >= 0),
    last_ms bigint not null,
    next_ms bigint not null
);
create index operator_failure_age on operator_failure (last_ms);

-- Who changed what. `previous_no` refers to the entry before, so that none can be left out or taken from the middle; the
-- hash covers the hash before it and everything in the row. Verification looks at both.
create table audit_entry (
    audit_no bigint primary key check (audit_no > 0),
    previous_no bigint generated always as (nullif(audit_no - 1, 0)) stored references audit_entry (audit_no),
    at_ms bigint not null,
    actor text not null check (length(actor) between 1 and 200),
    action text not null check (action ~ '^[a-z_]+(\.[a-z_]+)+$'),
    subject text not null check (length(subject) between 1 and 400),
    merchant_id bigint references merchant,
    source text not null check (length(source) between 1 and 64),
    before jsonb check (jsonb_typeof(before) = 'object'),
    after jsonb check (jsonb_typeof(after) = 'object'),
    hash bytea not null check (length(hash) = 32)
);
-- Lists, newest first, by each of the ways of asking.
create index audit_entry_merchant on audit_entry (merchant_id, audit_no);
create index audit_entry_actor on audit_entry (actor, audit_no);
create index audit_entry_action on audit_entry (action, audit_no);

-- The log's end, its lock and its clock: one row.
create table audit_head (
    is_head boolean primary key default true check (is_head),
    entry_count bigint not null check (entry_count >= 0),
    head_hash bytea not null check (length(head_hash) = 32),
    last_ms bigint not null
);
insert into audit_head (entry_count, head_hash, last_ms) values (0, decode(repeat('00', 32), 'hex'), 0);
