"""Withdrawals: orders that leave the merchant's balance for a chain.

`payer` pays orders, `expiry` gives up those nobody approved in time; `payouts` and `sandbox_ledger` keep what
they must remember. The order's own money and life are rules of the book.
"""
