"""Reconciliation: what the platform holds on its chains, compared with its books.

`comparison` and `report` are pure. `records` has the SQL of books and results. `balances` asks the chains,
and `sandbox` simulates them. The loop that runs them is in `processes.reconciliation`. Nothing here moves
money.
"""
