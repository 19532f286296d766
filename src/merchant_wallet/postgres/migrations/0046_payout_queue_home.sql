-- The payer's queue. A payout says itself what the payer has to do next, so that the queue needs no look at the orders. They may
-- be in another database.
alter table payout add column chain chain_code;
alter table payout add column phase text not null default 'queued'
    constraint payout_phase check (phase in ('waiting', 'queued', 'taken_up', 'failed', 'closed'));
update payout p
   set chain = w.chain,
       phase = case when w.status = 0 and w.approved_ms is null then 'waiting' when w.status = 0 then 'queued'
                    when w.status = 1 then 'taken_up' when w.status = 3 then 'failed' else 'closed' end
  from withdrawal w
 where w.merchant_id = p.merchant_id and w.order_id = p.order_id;
alter table payout alter column chain set not null;
-- Nobody has claimed what was only queued.
alter table payout alter column claimed_by drop not null;
alter table payout drop constraint payout_fence_check;
alter table payout add constraint payout_claimed check (fence >= 0 and (fence = 0) = (claimed_by is null));
-- The order may be in another database. The payer reads it before it takes it up, and verification compares.
alter table payout drop constraint payout_merchant_id_order_id_fkey;
create index payout_open on payout (claimed_until_ms, merchant_id, order_id) where phase <> 'closed';
