-- A long journal of one merchant, made at once. Its hashes are not real, because no test verifies it.
with made as (
    insert into entry (merchant_id, entry_id, kind, mc_order_id, at_ms, hash)
    select m, r.range_no * 4294967296 + n, 'merchant_to_user', 'order-' || n, n, decode(repeat('00', 32), 'hex')
      from (select %s::bigint as m) x
      join id_range r on r.merchant_id = m
     cross join generate_series(1, %s) n
    returning merchant_id, entry_id)
insert into posting (merchant_id, entry_id, posting_no, source_id, target_id, currency, amount, source_balance, target_balance)
select merchant_id, entry_id, 1, 1, 3, 'USDT', 1, 0, 1 from made;
