"""Sub-users: wallets' addresses and links, what they let the merchant debit, what the wallet page stands on.

Rules: `wallets` and `pin_rules` are pure. `controls`, `pins`, `sessions`, `profile` and `activity` have SQL.
Nothing here moves money: balances and opening a wallet are the book's.
"""
