-- A callback that failed for the last time is a dead letter.

alter table callback drop constraint callback_state_check;
drop index callback_resting;
update callback set state = 'dead_letter' where state = 'parked';
alter table callback add constraint callback_state_check check (state in ('due', 'delivered', 'dead_letter', 'paused'));
create index callback_stopped on callback (merchant_id, order_id) where state in ('dead_letter', 'paused');
alter table callback rename constraint callback_status_told to callback_event_status;

-- A payout that waits for an obstacle to pass is blocked.
alter index payout_hindered rename to payout_blocked;
