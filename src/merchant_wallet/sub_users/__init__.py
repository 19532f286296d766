"""Sub-users: their addresses, wallet links, debit limits, PIN, sessions, profile and activity.

Rules: `wallets` and `pin_rules` are pure, the other modules run SQL. Nothing here moves money: the book opens
wallets and changes balances.
"""
