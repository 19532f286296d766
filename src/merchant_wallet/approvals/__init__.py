"""Two pairs of eyes on an operator's own entries: one person proposes an adjustment, another carries it out.

Withdrawals above the second limit are the book's own affair: see `book.rules.approvals`.
"""
