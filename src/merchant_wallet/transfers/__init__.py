"""Transfers between sub-users' wallets and the merchant's balance, both directions."""
