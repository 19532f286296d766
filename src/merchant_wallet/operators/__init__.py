"""Operators: accounts, roles and rights, and sign-in with a password and a second factor."""
