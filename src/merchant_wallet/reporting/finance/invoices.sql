-- Invoices of fees. They are only added.

-- fragment: invoice
-- One invoice. `corrects` is the last one of the same book for a former version of the month.
i.year, i.number, i.merchant_id, i.month, i.merchant_name, i.issuer, i.lines, i.issued_ms, i.version,
       i.issuer_tax_id, i.merchant_address, i.merchant_tax_id, i.due_days,
       (select max(f.number) from invoice f
         where f.merchant_id = i.merchant_id and f.month = i.month and f.version < i.version) as corrects

-- name: find_last
-- The last number of a year. One process at a time adds invoices.
select max(number) as number from invoice where year = %(year)s::int;

-- name: add_invoices
-- The invoices of a month, each after the one before.
insert into invoice (year, number, previous_number, merchant_id, month, merchant_name, issuer, lines, issued_ms,
                     version, issuer_tax_id, merchant_address, merchant_tax_id, due_days)
select %(year)s::int, u.number, nullif(u.number - 1, 0), u.merchant_id, %(month)s::text, u.merchant_name, %(issuer)s::text, u.lines,
       %(issued_ms)s::bigint, %(version)s::int, %(issuer_tax_id)s::text, u.merchant_address, u.merchant_tax_id,
       %(due_days)s::int
  from unnest(%(numbers)s::int[], %(merchant_ids)s::bigint[], %(names)s::text[], %(addresses)s::text[], %(tax_ids)s::text[],
              %(lines)s::text[])
       u (number, merchant_id, merchant_name, merchant_address, merchant_tax_id, lines)
 order by u.number;

-- name: list_invoices
-- Invoices before one, newest first, of one merchant or of all.
select {invoice} from invoice i
 where (year, number) < (%(year)s::int, %(number)s::int)
   and (%(merchant_id)s::bigint is null or merchant_id = %(merchant_id)s::bigint)
   and (%(month)s::text is null or month = %(month)s::text)
 order by year desc, number desc limit %(page)s::int;

-- name: read_invoice
-- One invoice.
select {invoice} from invoice i where year = %(year)s::int and number = %(number)s::int;

-- name: list_of_month
-- The invoices of a month, oldest first.
select {invoice} from invoice i where month = %(month)s::text order by year, number;
