"""Changes that need two people: one person proposes, another carries out.

`proposals` has adjustments of a book, `changes` every other change. Both follow the rules in `decisions`.
Withdrawals above the second limit belong to the book: see `book.rules.approvals`.
"""
