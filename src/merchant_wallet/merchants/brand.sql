-- How merchants' wallet pages look. `brand.py` runs these, in home.

-- name: read_brand
-- The look of one merchant's wallet pages, with its name.
select name, brand_colour, brand_logo, customer_url from merchant where merchant_id = %(merchant_id)s::bigint;

-- name: insert_logo
-- A logo. The same file may have been uploaded before.
insert into brand_logo (digest, merchant_id, content, uploaded_ms, uploaded_by)
values (%(digest)s::text, %(merchant_id)s::bigint, %(content)s::bytea, %(at_ms)s::bigint, %(actor)s::text)
on conflict (digest) do nothing;

-- name: count_logos
-- How many logos were uploaded for a merchant since a time, and how many ever.
select count(*) filter (where uploaded_ms > %(since_ms)s::bigint), count(*)
  from brand_logo where merchant_id = %(merchant_id)s::bigint;

-- name: read_logo
-- The file of a logo.
select content from brand_logo where digest = %(digest)s::text;
