"""The book: the core of the product. One merchant is one book, one lock and one hash-chained journal.

Pure: `chart`, `commands`, `outcomes`, `state`, `journal` and `rules`. Around them: `store` (SQL), `link` (one
database connection), `writer` (batches), `reads` (statements and listings) and `verify`.
"""
