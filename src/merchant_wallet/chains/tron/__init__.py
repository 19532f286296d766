"""TRON: payouts, deposits and sweeps of a TRC-20 token."""
