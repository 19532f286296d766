"""Sub-users: their wallets' addresses and links, and what they let the merchant debit.

Rules: `wallets` is pure; `controls` is the only one with SQL. Balances and opening a wallet are the book's.
"""
