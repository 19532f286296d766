-- kind: expand
-- Every address that is or was ours, also a former hot wallet, and the recipient of each payout that may be signed.

-- step: transaction
-- Who gets the money. Null in reservations of older programs.
alter table payout_reservation add column if not exists recipient bytea;
-- squawk-ignore ban-drop-constraint
alter table payout_reservation drop constraint if exists payout_reservation_recipient;
alter table payout_reservation add constraint payout_reservation_recipient check (length(recipient) = 20) not valid;

-- step: transaction
alter table payout_reservation validate constraint payout_reservation_recipient;

-- step: transaction
-- The hot wallets of now, and those that ever paid: one index look-up for each wallet. Twenty zero bytes stand for the sandbox's
-- wallet from before hot wallets were recorded.
insert into custody_address (chain, address, purpose, since_ms)
with recursive paid (chain, wallet) as (
    (select r.chain::text, r.wallet from payout_reservation r order by r.chain, r.wallet limit 1)
    union all
    select n.chain, n.wallet from paid p cross join lateral (
           select r.chain::text, r.wallet from payout_reservation r where (r.chain, r.wallet) > (p.chain, p.wallet)
            order by r.chain, r.wallet limit 1) n)
select w.chain, w.address, 'hot', (extract(epoch from now()) * 1000)::bigint
  from (select chain, address from hot_wallet union select chain, wallet from paid) w (chain, address)
 where w.address <> decode(repeat('00', 20), 'hex')
on conflict (chain, address) do nothing;

-- step: concurrently
-- The few wallets among many deposit addresses.
create index concurrently if not exists custody_address_wallet on custody_address (address) where purpose <> 'deposit';

-- step: concurrently
create index concurrently if not exists payout_reservation_paid_to on payout_reservation (recipient);
