-- What the database knows of the archive. Everybody who reads journals runs these.

-- name: list_months
-- What was archived of a book, oldest first.
select merchant_id, month, first_id, last_id, entries, postings, first_ms, last_ms, previous_hash, last_hash, digest, removed_id, written_ms
  from archived_month where merchant_id = %(merchant_id)s::bigint order by month;

-- name: count_names
-- How many names of removed entries a book has.
select count(*) from archived_order where merchant_id = %(merchant_id)s::bigint;

-- name: read_names
-- The names of removed entries, by their keys.
select o.entry_id, o.at_ms, o.source_id, o.target_id, o.amount, o.rate_e8, o.second_amount, o.source_balance, o.target_balance,
       o.kind::text, o.mc_order_id::text, o.currency, o.second_currency, o.facts
  from unnest(%(names)s::text[], %(kinds)s::text[]) u (name, kind)
 cross join lateral (select * from archived_order where merchant_id = %(merchant_id)s::bigint and mc_order_id = u.name
                        and kind = u.kind limit 1) o;
