"""Detects that the database was rolled back. Payouts then stop until a person accepts it."""
