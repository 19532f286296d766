-- Proposals of any kind: what one person proposes and another carries out. Until now there were adjustments alone.
-- A change names its kind (`merchant.set`), its subject, the value it was proposed against and the value it sets.
-- Rules: a proposal belongs to the platform and may name a merchant. `proposer_from_ms` and `decider_from_ms` say from
-- when each person's word counts: nobody proposes or accepts before that. After `expires_ms` nobody accepts it.

alter table proposal drop constraint proposal_pkey;
alter table proposal drop constraint proposal_proposal_no_key;
alter table proposal add primary key (proposal_no);
alter table proposal alter column merchant_id reset (n_distinct);
alter table proposal
    alter column merchant_id drop not null,
    alter column currency drop not null,
    alter column signed_units drop not null,
    add column kind text not null default 'adjustment' check (kind ~ '^[a-z_]+(\.[a-z_]+)*$'),
    add column subject text check (length(subject) between 1 and 400),
    add column before jsonb check (jsonb_typeof(before) = 'object'),
    add column after jsonb check (jsonb_typeof(after) = 'object'),
    add column proposer_from_ms bigint,
    add column decider_from_ms bigint,
    add column expires_ms bigint,
    add constraint proposal_content check (
        case when kind = 'adjustment'
             then merchant_id is not null and currency is not null and signed_units is not null
                  and subject is null and before is null and after is null
             else currency is null and signed_units is null and ext_user_id is null and entry_id is null
                  and subject is not null and before is not null and after is not null end),
    add constraint proposal_proposer_counts check (proposed_ms >= proposer_from_ms),
    add constraint proposal_decider_counts check (state not in ('accepted', 'failed') or decided_ms >= decider_from_ms),
    add constraint proposal_in_time check (state not in ('accepted', 'failed') or decided_ms <= expires_ms),
    add constraint proposal_expiry check (expires_ms > proposed_ms);
alter table proposal alter column kind drop default;

drop index proposal_unfinished;
create index proposal_unfinished on proposal (proposal_no) where kind = 'adjustment' and state = 'accepted' and entry_id is null;
create index proposal_merchant on proposal (merchant_id, proposal_no);
