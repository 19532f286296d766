-- The sandbox's chains as custody: deposits by operators, and payouts of the sandbox's wallet, each from when it is
-- final.

-- name: list_transfers
-- What became final between two moments, both included, in order. Of the wallet's transfers only those to a cold wallet name
-- their recipient.
select tx_hash, null::bytea, (select c.address from cold_wallet c where c.chain = t.chain and c.address = t.recipient),
       amount_units, final_ms
  from sandbox_transfer t
 where chain = %(chain)s::text and verdict = 'paid' and final_ms >= %(first_ms)s::bigint and final_ms <= %(last_ms)s::bigint
union all
select coalesce(tx_hash, block_number::text), sender, recipient, amount_units, at_ms + %(confirm_ms)s::bigint from sandbox_deposit
 where chain = %(chain)s::text and at_ms >= %(first_ms)s::bigint - %(confirm_ms)s::bigint
   and at_ms <= %(last_ms)s::bigint - %(confirm_ms)s::bigint
 order by 5, 1;

-- name: sum_received
-- What each address has received up to a moment. Of what the wallet paid, only cold money is still ours.
select recipient, sum(amount_units)::bigint
  from (select recipient, amount_units from sandbox_deposit
         where chain = %(chain)s::text and at_ms <= %(last_ms)s::bigint - %(confirm_ms)s::bigint
        union all
        select t.recipient, t.amount_units
          from cold_wallet c join sandbox_transfer t on t.chain = c.chain and t.recipient = c.address
         where c.chain = %(chain)s::text and t.verdict = 'paid' and t.final_ms <= %(last_ms)s::bigint) r
 group by recipient;

-- name: sum_paid
-- What the sandbox's wallet has paid up to a moment.
select coalesce(sum(amount_units), 0)::bigint from sandbox_transfer
 where chain = %(chain)s::text and verdict = 'paid' and final_ms <= %(last_ms)s::bigint;
