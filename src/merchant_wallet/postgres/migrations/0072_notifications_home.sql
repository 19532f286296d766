-- kind: expand
-- Notifications about what waits in the inbox: where each operator gets them, which, and what was sent.

-- Where an operator is reached, and when not. An address is used once its owner has entered the code that was sent to it.
create table if not exists notification_contact (
    operator_id bigint primary key references operator,
    email text constraint notification_contact_email check (length(email) between 3 and 254),
    email_asked_ms bigint,
    email_tries smallint not null default 0,
    email_confirmed_ms bigint,
    webhook_url text constraint notification_contact_url check (length(webhook_url) between 1 and 500),
    webhook_sealed bytea,
    time_zone text not null constraint notification_contact_zone check (length(time_zone) between 1 and 64),
    quiet_from_min smallint,
    quiet_to_min smallint,
    constraint notification_contact_code check ((email is null) = (email_asked_ms is null)),
    constraint notification_contact_confirmed check (email_confirmed_ms is null or email is not null),
    constraint notification_contact_secret check ((webhook_url is null) = (webhook_sealed is null)),
    constraint notification_contact_quiet check (
        (quiet_from_min is null) = (quiet_to_min is null) and quiet_from_min <> quiet_to_min
        and quiet_from_min between 0 and 1439 and quiet_to_min between 0 and 1439)
);

-- The kinds of items that an operator wants to be told of. `wakes`: in quiet hours too.
create table if not exists notification_choice (
    operator_id bigint not null references operator,
    kind text not null constraint notification_choice_kind check (kind ~ '^[a-z-]{1,40}$'),
    by_email boolean not null,
    by_webhook boolean not null,
    wakes boolean not null,
    primary key (operator_id, kind),
    constraint notification_choice_some check (by_email or by_webhook)
);

-- The order in which people are told, and after how long the next one is.
create table if not exists escalation_step (
    operator_id bigint primary key references operator,
    step_no int not null constraint escalation_step_no unique check (step_no > 0)
);
create table if not exists escalation_time (
    kind text primary key constraint escalation_time_kind check (kind ~ '^[a-z-]{1,40}$'),
    after_s int not null constraint escalation_time_after check (after_s between 60 and 604800)
);

-- Each message, stored before it is sent. `is_doubtful`: a worker died while it was sending, so it may have arrived twice.
create table if not exists notification (
    notification_no bigint generated always as identity primary key,
    operator_id bigint not null references operator,
    channel text not null constraint notification_channel check (channel in ('email', 'webhook')),
    target text not null,
    is_test boolean not null,
    items jsonb not null,
    created_ms bigint not null,
    state text not null default 'waiting'
        constraint notification_state check (state in ('waiting', 'sent', 'failed', 'dropped')),
    attempt_no int not null default 0,
    next_ms bigint not null,
    claimed_until_ms bigint,
    is_doubtful boolean not null default false,
    ended_ms bigint,
    answer text,
    constraint notification_ended check ((ended_ms is null) = (state = 'waiting'))
);
create index if not exists notification_waiting on notification (next_ms) where state = 'waiting';
create index if not exists notification_failed on notification (ended_ms) where state = 'failed';
create index if not exists notification_of_operator on notification (operator_id, notification_no);
create index if not exists notification_age on notification (created_ms);

-- Whom the message of an item went to. The row goes some time after the item does.
create table if not exists notification_told (
    operator_id bigint not null references operator,
    channel text not null,
    kind text not null,
    item_key text not null,
    notification_no bigint not null references notification,
    told_ms bigint not null,
    gone_ms bigint,
    primary key (operator_id, channel, kind, item_key)
);
create index if not exists notification_told_by on notification_told (notification_no);
