-- Fragments that every file of queries may use. They are conditions that must be the same everywhere.

-- fragment: open_books
-- Leaves out closed books: the old copy of a book that has moved to another cell, and one that is being moved. A prefix may name
-- the table: `u.{open_books}`. It is `not in` for the planner's sake (decision 0151): it takes that for half of the rows. It
-- takes `<> all (array(…))` for no row at all, since `merchant_id` has `n_distinct = 1`, and then reads and sorts a whole table
-- to find the one row that it expects. `merchant_id` is never null, so `not in` means what it says.
merchant_id not in (select merchant_id from book where not is_open)

-- fragment: book_is_open
-- The merchant's book is here and open. A closed book is being moved, or has moved to another cell; its copy here stays as it is.
exists (select from book o where o.merchant_id = %(merchant_id)s::bigint and o.is_open)
