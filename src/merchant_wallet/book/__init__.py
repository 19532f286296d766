"""The book: the core of the product. One merchant is one book, one lock and one hash-chained journal.

Pure: `chart`, `commands`, `outcomes`, `state`, `journal`, `needs`, `rules`, and for reading back `replay`,
`shapes`, `orders`, `credits`, `faults`. Around them: `arrays`, `link`, `deposits` and `store` (SQL), `lane`
and `writer` (batches), `reads` (statements and listings), `verify` and `checkpoints`.
"""
