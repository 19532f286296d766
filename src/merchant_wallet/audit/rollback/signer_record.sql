-- What the signer's record is compared with.

-- name: read_accepted
-- The time up to which a person has accepted the signer's record.
select max(signed_upto_ms) from rollback_acceptance;

-- name: find_merchants
-- The merchants of these orders, in their order; null if nobody has the range of ids that an order's id contains.
select r.merchant_id
  from unnest(%(order_ids)s::bigint[]) with ordinality o (order_id, place)
  left join id_range r on r.range_no = (o.order_id >> %(counter_bits)s::int)::int
 order by o.place;

-- name: list_taken_up
-- Of these orders, those that somebody has taken up.
select w.order_id
  from unnest(%(merchant_ids)s::bigint[], %(order_ids)s::bigint[]) o (merchant_id, order_id)
  join withdrawal w on w.merchant_id = o.merchant_id and w.order_id = o.order_id
 where w.status in (1, 2, 3, 6);

-- name: list_known_cold
-- Of these transfers to cold wallets, those that home has.
select transfer_id from cold_transfer where transfer_id = any (%(transfer_ids)s::bigint[]);
