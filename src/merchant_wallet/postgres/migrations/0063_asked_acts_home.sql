-- kind: expand
-- Acts that people ask for on a page, and that a worker carries out: web processes have no keys and reach no nodes.
create table if not exists asked_act (
    act_no bigint generated always as identity primary key,
    kind text not null,
    subject text not null,
    merchant_id bigint,
    arguments jsonb not null,
    reason text not null,
    asked_by text not null,
    asked_ms bigint not null,
    expires_ms bigint not null,
    state text not null default 'waiting'
        constraint asked_act_state check (state in ('waiting', 'running', 'done', 'failed', 'cancelled', 'lapsed')),
    fence int not null default 0,
    worker text,
    begun_ms bigint,
    claimed_until_ms bigint,
    progress text not null default '',
    result jsonb,
    cause text,
    ended_ms bigint,
    constraint asked_act_ended check ((ended_ms is null) = (state in ('waiting', 'running'))),
    constraint asked_act_claimed check (state <> 'running' or (worker is not null and claimed_until_ms is not null))
);
-- The same is not asked twice at once: a double click asks once.
create unique index if not exists asked_act_open on asked_act (kind, subject) where ended_ms is null;
create index if not exists asked_act_of on asked_act (subject, act_no desc);

-- What workers last said about what only they can see: nodes, signer, hot wallets, checkpoints. One row for each thing.
create table if not exists worker_report (
    topic text not null,
    subject text not null,
    report jsonb not null,
    worker text not null,
    reported_ms bigint not null,
    primary key (topic, subject)
);
