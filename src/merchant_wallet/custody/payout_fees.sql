-- The fees of payouts, read from the chains behind the payments.

-- name: read_place
-- Up to which ended payout the fees are known.
select ended_no from network_fee_cursor where chain = %(chain)s::text;

-- name: list_ended
-- The next payouts that have ended, with everything that was signed for them.
select r.ended_no, s.tx_hash, s.signed_ms
  from (select merchant_id, order_id, ended_no from payout_reservation
         where chain = %(chain)s::text and ended_no > %(after)s::bigint order by ended_no limit %(page)s::int) r
  left join lateral (
       select tx_hash, signed_ms from payout_signed
        where merchant_id = r.merchant_id and order_id = r.order_id offset 0) s on true
 order by r.ended_no;

-- name: add_fees
-- Fees that were read.
insert into network_fee (chain, tx_hash, purpose, fee, at_ms)
select %(chain)s::text, u.tx_hash, 'payout', u.fee, u.at_ms
  from unnest(%(tx_hashes)s::text[], %(fees)s::numeric[], %(moments)s::bigint[]) u (tx_hash, fee, at_ms)
on conflict (chain, tx_hash) do nothing;

-- name: move_place
-- The place only moves forward, even if two read at once.
insert into network_fee_cursor as c (chain, ended_no) values (%(chain)s::text, %(ended_no)s::bigint)
on conflict (chain) do update set ended_no = excluded.ended_no where c.ended_no < excluded.ended_no;
