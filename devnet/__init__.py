"""Chains to develop and test on: an EVM node and a double of a TRON node, with a token on each.

Not part of the installed package. The node is npm's Foundry anvil, exactly the version in package-lock.json;
`tokens/` holds the token's source and what the Solidity compiler made of it.
"""
