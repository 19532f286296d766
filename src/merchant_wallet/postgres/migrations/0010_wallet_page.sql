-- What the wallet page stands on: the sub-user's PIN, the sessions of the page, its language, and who may frame it.
-- Rules: these rows are no part of a book's money. Whether a sub-user has a PIN is read by the book's debit rule, so
-- setting the first one and taking it away are done under the book's lock.

-- `pin_failures` counts wrong PINs since the last right one; before `pin_locked_until_ms` none is compared at all. Where
-- there is no PIN there is nothing to count.
alter table sub_user
    add column pin_set_ms bigint,
    add column pin_failures int not null default 0 check (pin_failures >= 0),
    add column pin_locked_until_ms bigint not null default 0 check (pin_locked_until_ms >= 0),
    add column language text check (language in ('en', 'zh-CN')),
    add constraint sub_user_pin check (
        pin_hash is not null or (pin_set_ms is null and pin_failures = 0 and pin_locked_until_ms = 0));

-- A browser that a link let in. Only the hash of its token is kept, so that nobody can use what is read here; the token
-- names its merchant, so that a session is found by its whole key.
create table wallet_session (
    merchant_id bigint not null,
    token_hash bytea not null check (length(token_hash) = 32),
    user_id bigint not null,
    is_framed boolean not null,
    created_ms bigint not null,
    seen_ms bigint not null,
    expires_ms bigint not null,
    primary key (merchant_id, token_hash),
    foreign key (merchant_id, user_id) references sub_user (merchant_id, user_id),
    constraint wallet_session_times check (created_ms <= seen_ms and created_ms < expires_ms)
);
-- A sub-user's own sessions, and those that upkeep clears away.
create index wallet_session_user on wallet_session (merchant_id, user_id, created_ms);
create index wallet_session_end on wallet_session (expires_ms);
alter table wallet_session alter column merchant_id set (n_distinct = 1);

-- Origins whose pages may show the wallet page in a frame. They end up in a header, so nothing but the characters of an
-- origin gets in here.
alter table merchant
    add column frame_origins text[] not null default '{}'
        check (array_to_string(frame_origins, ' ', '*') ~ '^[]a-z0-9:/.[ -]*$');
