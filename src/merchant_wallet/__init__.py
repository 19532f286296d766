"""Merchant balances, sub-user wallets, withdrawals and exchange behind one signed HTTP interface."""
