"""Two people for one act: one person proposes it, another carries it out.

`adjustments` of a book are in `proposals`; every other change is in `changes`. Both follow `decisions`.
Withdrawals above the second limit are the book's own affair: see `book.rules.approvals`.
"""
