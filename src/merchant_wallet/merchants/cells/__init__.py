"""Cells: which cell has a merchant's book, and how it is reached.

- `directory` reads home's table of cells.
- `writers` has one writer of books for each cell.
- `carrying` brings new merchants and changed settings from home to apart cells.
- `moving` moves a cell to another database. `moves` is home's record of it, `fence` closes and opens copies,
  `new_place` makes the schema, `replication` fills it, `copies` verifies it, `takeover` is the worker,
  `lost_places` ends a move whose other place is gone.
- `book_moving` moves the book of one merchant to another cell. `book_moves` is home's record of it,
  `book_fence` closes and opens copies, `book_tables` knows the tables, `book_copies` fills and compares
  copies with `book_statements`, and `book_takeover` is the worker.
- After a rollback of home, `places` finds where cells are, and `home_restoration` gives home what cells have:
  `lost_merchants` brings merchants back, `book_placement` places their books.
- `mirroring` copies rates and evidence of rollbacks to apart cells. `updates` is the worker that does both.
"""
