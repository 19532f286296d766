-- A hot wallet counts the payouts that have ended, also those that failed and spent nothing. A reservation that ended has the
-- count as its number.

alter table hot_wallet rename column spent_no to ended_payouts;
alter table hot_wallet rename column funds_spent_no to funds_ended_payouts;
alter table hot_wallet rename constraint hot_wallet_spent_no_check to hot_wallet_ended_payouts_check;
alter table payout_reservation rename column spent_no to ended_no;
alter table payout_reservation rename constraint payout_reservation_spent_no_check to payout_reservation_ended_no_check;
alter index payout_reservation_spent rename to payout_reservation_ended;
