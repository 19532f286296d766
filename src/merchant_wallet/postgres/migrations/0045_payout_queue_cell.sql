-- Whether the payer's queue, which is in home, has the order. It is set after the queue has it.
alter table withdrawal add column is_queued boolean not null default false;
create index withdrawal_unqueued on withdrawal (approved_ms, merchant_id, order_id)
 where not is_queued and approved_ms is not null and status in (0, 1, 3);
