-- What the signer's record is compared with.

-- name: read_accepted
-- The time up to which a person has accepted the signer's record.
select max(signed_upto_ms) from rollback_acceptance;

-- name: find_unknown
-- Of these orders, those that the database does not know or that nobody has taken up. An id contains its book's range.
select o.order_id
  from unnest(%(order_ids)s::bigint[]) o (order_id)
  left join id_range r on r.range_no = (o.order_id >> %(counter_bits)s::int)::int
  left join withdrawal w on w.merchant_id = r.merchant_id and w.order_id = o.order_id
 where w.status is null or w.status not in (1, 2, 3, 6)
 order by o.order_id;
