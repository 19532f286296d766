"""Withdrawals: orders that leave the merchant's balance for a chain.

`payer` pays orders, and `expiry` ends orders that nobody approved in time. `payouts` and `sandbox_ledger`
have their SQL. The book's rules decide about the order's status and money.
"""
