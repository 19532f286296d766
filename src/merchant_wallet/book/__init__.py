"""The book: the core of the product. One merchant is one book, one lock and one hash-chained journal.

Pure: `chart`, `commands`, `outcomes`, `state`, `journal`, `read_set`, `cache`, `rules`, and most of
`verification`. Around them: `connection` and `pool`, `store` and `preconditions` (SQL), `queue` and `writer`
(batches), `reads` (statements and listings), `checkpoints`.
"""
