"""Lists, search, figures and exports over all books, for the console.

Rules: everything is read only, except the rollup's two tables. Nothing here locks a book. Each statement uses
an index and reads a bounded number of rows, whatever the size of a book.
"""
