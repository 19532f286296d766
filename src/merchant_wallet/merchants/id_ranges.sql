-- Id ranges, which home gives to books. `id_ranges.py` runs these.

-- name: lock_ranges
-- Lets one process at a time take the next id range. It is an advisory lock: LOCK TABLE would need the right to change the
-- ranges.
select pg_advisory_xact_lock(hashtext('id_range'));

-- name: read_next_range
-- The range after the last one given out, also to merchants that a restored home does not know. Read it under the lock.
select greatest((select max(range_no) from id_range), (select max(range_no) from lost_range), 0) + 1 as range_no;

-- name: insert_range
-- Gives a range of ids to one book, for ever.
insert into id_range (range_no, merchant_id) values (%(range_no)s::int, %(merchant_id)s::bigint);

-- name: find_unused_range
-- A range that home has given to a merchant and its book does not know yet, because a process ended in between. The first one:
-- a book uses its ranges in order.
select range_no from id_range
 where range_no > %(id_range)s::int and merchant_id = %(merchant_id)s::bigint order by range_no limit 1;

-- name: read_ranges
-- The range that a book uses now, and its next one.
select id_range, next_range from book where merchant_id = %(merchant_id)s::bigint;

-- name: write_next_range
-- Gives a book the range after its current one, and moves its version. No row if it has one already, or uses this one.
update book set next_range = %(range_no)s::int, version = %(version)s::uuid
 where merchant_id = %(merchant_id)s::bigint and next_range is null and id_range < %(range_no)s::int and is_open
returning merchant_id;

-- name: list_books_short_of_ids
-- Books near the end of their range without a further one.
select merchant_id from book where next_range is null and id_counter >= %(counter)s::bigint and is_open order by merchant_id;
