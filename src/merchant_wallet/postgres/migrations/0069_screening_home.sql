-- kind: expand
-- Screening: what was asked about an order before its payout or about a deposit before its credit, what was answered, and what
-- people decided. And the rules for the payouts of a merchant.

-- One row for each order or deposit that was screened. `address` is the other side: who is paid, or who sent.
create table if not exists screening (
    screening_no bigint generated always as identity primary key,
    merchant_id bigint not null,
    order_id bigint,
    chain chain_code not null,
    tx_hash text,
    log_index int,
    address bytea not null constraint screening_address check (length(address) = 20),
    amount bigint not null constraint screening_amount check (amount > 0),
    facts text not null,
    state text not null default 'open' constraint screening_state check (state in ('open', 'passed', 'held', 'refused', 'released')),
    reasons jsonb not null default '[]' constraint screening_reasons check (jsonb_typeof(reasons) = 'array'),
    round_no int not null default 1 constraint screening_round check (round_no > 0),
    begun_ms bigint not null,
    changed_ms bigint not null,
    cleared_ms bigint,
    decided_by text constraint screening_decided_by check (decided_by <> ''),
    decided_ms bigint,
    proposal_no bigint,
    applied_ms bigint,
    constraint screening_subject check (
        case when order_id is null then tx_hash is not null and log_index is not null else tx_hash is null and log_index is null end),
    -- What is cleared may be paid or credited: by itself, or because a person said so.
    constraint screening_cleared check ((cleared_ms is null) = (state not in ('passed', 'released'))),
    constraint screening_decided check ((decided_by is null) = (decided_ms is null)
        and (state <> 'released' or decided_by is not null) and (state in ('refused', 'released') or decided_by is null)
        and (proposal_no is null or decided_by is not null) and (applied_ms is null or decided_by is not null))
);
create unique index if not exists screening_order on screening (merchant_id, order_id) where order_id is not null;
create unique index if not exists screening_deposit on screening (chain, tx_hash, log_index) where tx_hash is not null;
create index if not exists screening_of_merchant on screening (merchant_id, screening_no);
create index if not exists screening_waiting on screening (screening_no) where state in ('open', 'held');
create index if not exists screening_unapplied on screening (decided_ms) where decided_ms is not null and applied_ms is null;
-- Sums what of a merchant's money was cleared within a window.
create index if not exists screening_cleared_orders on screening (merchant_id, cleared_ms) include (amount)
 where order_id is not null and cleared_ms is not null;

-- A question to the screening URL, one for each round, and its answer. An answer never changes.
create table if not exists screening_question (
    screening_no bigint not null,
    round_no int not null,
    request_id text not null constraint screening_question_request_id unique,
    body text not null,
    asked_ms bigint not null,
    attempts int not null constraint screening_question_attempts check (attempts > 0),
    error text,
    answered_ms bigint,
    verdict text constraint screening_question_verdict check (verdict in ('pass', 'hold', 'refuse')),
    reason text,
    reference text,
    primary key (screening_no, round_no),
    constraint screening_question_answered check ((answered_ms is null) = (verdict is null))
);
create index if not exists screening_question_asked on screening_question (asked_ms);

-- The rules for a merchant's payouts. Null: no such rule.
alter table merchant add column if not exists payout_limit_units bigint constraint merchant_payout_limit check (payout_limit_units >= 0);
alter table merchant add column if not exists payout_limit_count int constraint merchant_payout_count check (payout_limit_count >= 0);
alter table merchant add column if not exists payout_window_h int not null default 24
    constraint merchant_payout_window check (payout_window_h between 1 and 168);
alter table merchant add column if not exists first_payout_limit_units bigint
    constraint merchant_first_payout_limit check (first_payout_limit_units >= 0);
alter table merchant add column if not exists payout_hours text
    constraint merchant_payout_hours check (length(payout_hours) between 1 and 100);
