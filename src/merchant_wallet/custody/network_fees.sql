-- What our transactions have cost, read from the chains behind payouts, cancelled nonces and cold transfers.

-- name: read_place
-- Up to which ended payout and which cold transfer the fees are known.
select ended_no, cold_transfer_id from network_fee_cursor where chain = %(chain)s::text;

-- name: list_ended
-- The next payouts that have ended, with everything that was signed for them.
select r.ended_no, s.tx_hash, s.signed_ms
  from (select merchant_id, order_id, ended_no from payout_reservation
         where chain = %(chain)s::text and ended_no > %(after)s::bigint order by ended_no limit %(page)s::int) r
  left join lateral (
       select tx_hash, signed_ms from payout_signed
        where merchant_id = r.merchant_id and order_id = r.order_id offset 0) s on true
 order by r.ended_no;

-- name: list_cancelled
-- The next cancelled nonces whose fees were not read, with everything that was signed to cancel them.
select n.wallet, n.nonce, s.tx_hash, s.signed_ms
  from (select chain, wallet, nonce from wallet_nonce
         where chain = %(chain)s::text and cancelled_ms is not null and fee_read_ms is null
         order by wallet, nonce limit %(page)s::int) n
  left join lateral (
       select tx_hash, signed_ms from cancel_signed
        where chain = n.chain and wallet = n.wallet and nonce = n.nonce offset 0) s on true
 order by n.wallet, n.nonce;

-- name: list_cold
-- The next cold transfers that have ended, with everything that was signed for them, and with what was recorded, or sent by a
-- wallet program that chose other fees. A recorded transaction that turned out to be another is not ours, and its fee neither.
select t.transfer_id, s.tx_hash, coalesce(s.signed_ms, t.ended_ms) as at_ms,
       case t.direction when 'to_cold' then 'cold' else 'refill' end as purpose
  from (select chain, transfer_id, direction, way, tx_hash, step, ended_ms from cold_transfer
         where chain = %(chain)s::text and transfer_id > %(after)s::bigint and ended_ms is not null
         order by transfer_id limit %(page)s::int) t
  left join lateral (
       select tx_hash, signed_ms from cold_signed where chain = t.chain and transfer_id = t.transfer_id
       union all
       select t.tx_hash, null
        where (t.step = 'done' or t.way = 'elsewhere')
          and not exists (select from cold_signed g
                           where g.chain = t.chain and g.transfer_id = t.transfer_id and g.tx_hash = t.tx_hash)
       offset 0) s on true
 order by t.transfer_id;

-- name: add_fees
-- Fees that were read.
insert into network_fee (chain, tx_hash, purpose, fee, at_ms)
select %(chain)s::text, u.tx_hash, u.purpose, u.fee, u.at_ms
  from unnest(%(tx_hashes)s::text[], %(purposes)s::text[], %(fees)s::numeric[], %(moments)s::bigint[])
       u (tx_hash, purpose, fee, at_ms)
on conflict (chain, tx_hash) do nothing;

-- name: move_payout_place
-- The place only moves forward, even if two read at once.
insert into network_fee_cursor as c (chain, ended_no) values (%(chain)s::text, %(place)s::bigint)
on conflict (chain) do update set ended_no = excluded.ended_no where c.ended_no < excluded.ended_no;

-- name: move_cold_place
-- The same for cold transfers.
insert into network_fee_cursor as c (chain, cold_transfer_id) values (%(chain)s::text, %(place)s::bigint)
on conflict (chain) do update set cold_transfer_id = excluded.cold_transfer_id
 where c.cold_transfer_id < excluded.cold_transfer_id;

-- name: mark_read
-- The fees of these nonces are known, or there are none.
update wallet_nonce n set fee_read_ms = %(now_ms)s::bigint
  from unnest(%(wallets)s::bytea[], %(nonces)s::bigint[]) u (wallet, nonce)
 where n.chain = %(chain)s::text and n.wallet = u.wallet and n.nonce = u.nonce and n.cancelled_ms is not null;
