-- Which tables a book has. `book_tables.py` runs this in a cell.

-- name: list_tables
-- The tables with a merchant's rows: columns that can be written, the key, and the tables that its foreign keys refer to.
select c.relname as name,
       (select array_agg(a.attname::text order by a.attnum) from pg_attribute a
         where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns,
       (select array_agg(a.attname::text order by k.place)
          from pg_index i
         cross join lateral unnest(i.indkey::int[]) with ordinality k (attnum, place)
          join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
         where i.indrelid = c.oid and i.indisprimary) as key,
       (select coalesce(array_agg(distinct r.relname::text), '{}')
          from pg_constraint f join pg_class r on r.oid = f.confrelid
         where f.conrelid = c.oid and f.contype = 'f' and f.confrelid <> c.oid) as referenced
  from pg_class c
 where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
   and c.relname = any (%(tables)s::text[])
   and exists (select from pg_attribute a
                where a.attrelid = c.oid and a.attname = 'merchant_id' and a.attnum > 0 and not a.attisdropped)
 order by c.relname;
