"""Ethereum and similar chains: payouts, deposits and sweeps of an ERC-20 token."""
