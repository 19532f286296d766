"""What operators look at: lists, search, figures and exports over all books.

Rules: read only, but for the rollup's own two tables; nothing here takes a book's lock. Each statement goes
by an index and reads a bounded number of rows, whatever the size of a book.
"""
