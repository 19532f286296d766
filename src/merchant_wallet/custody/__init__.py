"""Reconciliation: what the platform holds on its chains, compared with its books.

`comparison` and `report` are pure. `records` has the SQL of books and results, `balances` asks the chains,
and `sandbox` simulates them. Nothing here moves money.
"""
