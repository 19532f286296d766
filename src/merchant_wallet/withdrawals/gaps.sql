-- Places that nobody's payout takes while later ones wait for them, and what is signed to fill them.

-- name: adopt_gaps
-- Free places that were left for too long while something later is signed: from here on they are filled, whatever
-- comes. A payout that takes one at the same moment wins or loses it whole.
update payout_sequence f set purpose = 'fill', since_ms = %(now_ms)s::bigint
 where f.chain = %(chain)s::text and f.wallet = %(wallet)s::bytea and f.purpose = 'free'
   and f.since_ms <= %(before_ms)s::bigint
   and exists (select from payout_reservation r
                 join payout_signed s on s.merchant_id = r.merchant_id and s.order_id = r.order_id
                where r.chain = f.chain and r.wallet = f.wallet and r.sequence > f.sequence and r.spent_no is null);

-- name: close_gaps
-- A place is filled when a later one has been spent: the chain takes them in their order.
update payout_sequence f set filled_ms = %(now_ms)s::bigint
 where f.chain = %(chain)s::text and f.wallet = %(wallet)s::bytea and f.purpose = 'fill' and f.filled_ms is null
   and exists (select from payout_reservation r
                where r.chain = f.chain and r.wallet = f.wallet and r.sequence > f.sequence
                  and r.spent_no is not null);

-- name: list_gaps
-- What is being filled, the first place first.
select sequence from payout_sequence
 where chain = %(chain)s::text and wallet = %(wallet)s::bytea and purpose = 'fill' and filled_ms is null
 order by sequence;

-- name: read_fillers
-- Everything that was signed to fill a place, the oldest first.
select raw, tx_hash, built_at_block, signed_ms from filler_signed
 where chain = %(chain)s::text and wallet = %(wallet)s::bytea and sequence = %(sequence)s::bigint
 order by attempt_no;

-- name: store_filler
-- The signed bytes, before anybody broadcasts them. When another process was quicker with this number, its bytes stay.
-- After a rollback none are kept, so none are sent: the place may be a payout's in what was lost.
insert into filler_signed (chain, wallet, sequence, attempt_no, raw, tx_hash, built_at_block, signed_ms)
select %(chain)s::text, %(wallet)s::bytea, %(sequence)s::bigint, %(attempt_no)s::int, %(raw)s::bytea,
       %(tx_hash)s::text, %(built_at_block)s::bigint, %(now_ms)s::bigint
 where not exists (select from rollback_sign)
on conflict (chain, wallet, sequence, attempt_no) do nothing;
