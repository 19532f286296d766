"""The book: the core of the product. One merchant is one book, one lock and one hash-chained journal.

Pure: `chart`, `commands`, `outcomes`, `messages`, `state`, `journal`, `read_set`, `cache`, `columns`,
`rules`, and most of `verification`. Around them: `queue`, `writer` and `committer` (batches, groups),
`drafts` and `store` (SQL), `connection`, `reads` (statements and listings), `checkpoints`.
"""
