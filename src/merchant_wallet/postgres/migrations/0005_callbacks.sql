-- Telling merchants: how far each callback has come, and every attempt to deliver one.
-- Rules: the book inserts a callback in the commit of what it tells of and never looks at it again; the rest of the row
-- is the messenger's. An attempt is written down before anything is sent and completed when the answer is known, so
-- that one without an end is one whose process died.

-- What is told: a withdrawal's status, or a deposit's credit, which has the id of its entry and no status.
alter table callback drop constraint callback_merchant_id_order_id_fkey;
alter table callback drop constraint callback_status_check;
alter table callback
    add column event_type text not null default 'withdrawal',
    add column withdrawal_id bigint generated always as (case when event_type = 'withdrawal' then order_id end) stored,
    add column state text not null default 'due' check (state in ('due', 'delivered', 'parked', 'paused')),
    -- All attempts ever begun; the number is the claim too: a later one takes the right to say what comes next.
    add column attempt_no int not null default 0 check (attempt_no >= 0),
    -- The place in the schedule of repeats, which begins anew when an operator has a callback sent again.
    add column retry_no int not null default 0 check (retry_no >= 0),
    -- Nothing is sent before this moment: the next repeat's, or the end of the claim while an attempt is under way.
    add column next_ms bigint not null default 0 check (next_ms >= 0),
    add column claimed_by text check (claimed_by <> ''),
    add column delivered_ms bigint,
    add constraint callback_status_told check (
        (event_type = 'withdrawal' and status in (2, 3, 4, 5, 6)) or (event_type = 'deposit' and status = 0)),
    add constraint callback_delivered check (state <> 'delivered' or delivered_ms is not null),
    add foreign key (merchant_id, withdrawal_id) references withdrawal (merchant_id, order_id);
-- The messenger's queue, merchant by merchant, so that one with much to be told hides no other.
create index callback_due on callback (merchant_id, next_ms, created_ms) where state = 'due';
-- What waits for an operator, and what he made wait.
create index callback_resting on callback (merchant_id, order_id) where state in ('parked', 'paused');

-- One attempt: `answer` is the beginning of what came back, `error` why it was no success. Only inserted, and
-- completed once.
create table callback_attempt (
    merchant_id bigint not null,
    order_id bigint not null,
    status smallint not null,
    attempt_no int not null check (attempt_no > 0),
    at_ms bigint not null,
    address text check (address <> ''),
    http_status smallint,
    error text check (error <> ''),
    answer bytea,
    latency_ms int check (latency_ms >= 0),
    primary key (merchant_id, order_id, status, attempt_no),
    foreign key (merchant_id, order_id, status) references callback (merchant_id, order_id, status)
);
alter table callback_attempt alter column merchant_id set (n_distinct = 1);

-- Merchants that nothing is sent to until an operator says so.
create table callback_pause (
    merchant_id bigint primary key references merchant,
    since_ms bigint not null,
    paused_by text not null check (paused_by <> '')
);
