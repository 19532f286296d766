-- A hot wallet's balance and what is reserved of it.

-- name: record_funds
-- The chain's answer about the wallet, unless a later request has been answered.
update hot_wallet
   set funds = %(funds)s::bigint, funds_ended_payouts = %(ended_payouts)s::bigint, checked_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and address = %(wallet)s::bytea
   and (funds_ended_payouts is null or funds_ended_payouts <= %(ended_payouts)s::bigint);

-- name: sum_reserved
-- What is reserved of the wallet's balance: open payouts and transfers to cold wallets, and those that ended after the
-- balance was requested.
select ((select coalesce(sum(amount), 0) from payout_reservation where chain = %(chain)s::text and ended_no is null)
      + (select coalesce(sum(amount), 0) from payout_reservation
          where chain = %(chain)s::text and ended_no > %(funds_ended_payouts)s::bigint)
      + (select coalesce(sum(amount), 0) from cold_transfer
          where chain = %(chain)s::text and reserved_ms is not null and ended_no is null)
      + (select coalesce(sum(amount), 0) from cold_transfer
          where chain = %(chain)s::text and reserved_ms is not null
            and ended_no > %(funds_ended_payouts)s::bigint))::bigint;
