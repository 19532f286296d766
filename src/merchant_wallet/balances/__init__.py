"""The merchant's own two balances."""
