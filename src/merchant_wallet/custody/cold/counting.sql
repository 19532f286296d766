-- Cold wallets as reconciliation counts them.

-- name: find_uncounted_cold
-- Cold wallets that are not counted yet.
select address from cold_wallet where chain = %(chain)s::text and opening is null order by address;

-- name: count_cold
-- A cold wallet counts from this block on. The first who counts it wins.
update cold_wallet set opening = %(units)s::bigint, opening_block = %(block_number)s::bigint
 where chain = %(chain)s::text and address = %(address)s::bytea and opening is null;

-- name: write_cold_balance
-- What a cold wallet held at the block of a comparison. An older block changes nothing.
update cold_wallet
   set balance = %(units)s::bigint, balance_block = %(block_number)s::bigint, balance_ms = %(now_ms)s::bigint
 where chain = %(chain)s::text and address = %(address)s::bytea
   and (balance_block is null or balance_block <= %(block_number)s::bigint);
