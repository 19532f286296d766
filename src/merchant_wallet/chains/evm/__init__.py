"""Ethereum and chains like it: payouts, deposits and sweeps of an ERC-20 token."""
