-- Invoices of fees. They are only added.

-- name: find_last
-- The last number of a year. One process at a time adds invoices.
select max(number) as number from invoice where year = %(year)s::int;

-- name: add_invoices
-- The invoices of a month, each after the one before.
insert into invoice (year, number, previous_number, merchant_id, month, merchant_name, issuer, lines, issued_ms)
select %(year)s::int, u.number, nullif(u.number - 1, 0), u.merchant_id, %(month)s::text, u.merchant_name, %(issuer)s::text, u.lines,
       %(issued_ms)s::bigint
  from unnest(%(numbers)s::int[], %(merchant_ids)s::bigint[], %(names)s::text[], %(lines)s::text[])
       u (number, merchant_id, merchant_name, lines)
 order by u.number;

-- name: list_invoices
-- Invoices before one, newest first, of one merchant or of all.
select year, number, merchant_id, month, merchant_name, issuer, lines, issued_ms
  from invoice
 where (year, number) < (%(year)s::int, %(number)s::int)
   and (%(merchant_id)s::bigint is null or merchant_id = %(merchant_id)s::bigint)
   and (%(month)s::text is null or month = %(month)s::text)
 order by year desc, number desc limit %(page)s::int;

-- name: read_invoice
-- One invoice.
select year, number, merchant_id, month, merchant_name, issuer, lines, issued_ms
  from invoice where year = %(year)s::int and number = %(number)s::int;

-- name: list_of_month
-- The invoices of a month, for verification.
select year, number, merchant_id, month, merchant_name, issuer, lines, issued_ms
  from invoice where month = %(month)s::text order by year, number;
