"""Chains for development and tests: EVM nodes and fake TRON nodes, with a token on each.

Not part of the installed package. The EVM node is Foundry's anvil from npm, in the exact version of
package-lock.json. `tokens/` has the token's source and the Solidity compiler's output.
"""
