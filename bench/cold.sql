-- name: take_address_indexes
-- Uses up the first address indexes of merchants.
update merchant set next_address_index = greatest(next_address_index, %(count)s::int)
 where merchant_id = any(%(merchant_ids)s::bigint[]);

-- name: insert_issued
-- The platform's list of addresses.
insert into issued_address (merchant_id, address)
select u.* from unnest(%(merchant_ids)s::bigint[], %(addresses)s::bytea[]) u;
