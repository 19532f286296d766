-- When the order was frozen, for the rules of its book. Why it was is in home, at its payout.
alter table withdrawal add column frozen_ms bigint;
create index withdrawal_frozen on withdrawal (merchant_id, order_id) where frozen_ms is not null and status in (0, 1, 3);
