-- One name for one thing: an operator is eligible to approve from a moment on.

alter table operator_wait rename column until_ms to eligible_ms;
alter table withdrawal rename column first_counts_ms to first_eligible_ms;
alter table withdrawal rename column approved_counts_ms to approved_eligible_ms;
alter table withdrawal rename constraint withdrawal_first_counts to withdrawal_first_eligible;
alter table withdrawal rename constraint withdrawal_approved_counts to withdrawal_approved_eligible;
alter table proposal rename column proposer_from_ms to proposer_eligible_ms;
alter table proposal rename column decider_from_ms to decider_eligible_ms;
alter table proposal rename constraint proposal_proposer_counts to proposal_proposer_eligible;
alter table proposal rename constraint proposal_decider_counts to proposal_decider_eligible;

-- A survey that has seen every address is completed.
alter table custody_survey rename column whole_ms to completed_ms;
