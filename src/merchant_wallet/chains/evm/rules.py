"""What an operator lays down for an EVM chain, and which of a node's blocks are final by it."""

from typing import Final

import msgspec

from merchant_wallet.base.addresses import ERC20, USDT_CONTRACTS
from merchant_wallet.chains.evm.node import EvmNode
from merchant_wallet.chains.protocol import Block
from merchant_wallet.chains.transport import NodeRefused

FINALIZED: Final = "finalized"


class EvmRules(msgspec.Struct, frozen=True, gc=False):
    """The rules of one chain.

    `finality`: the chain's own tag `finalized`, or how many blocks must lie above a final one. `fee_cap_wei`:
    what one payout may cost at the very most. `stuck_blocks`: after so many blocks in which it could have
    been taken, a transaction is replaced. Gas is in units: a payout offers an estimate and a quarter more,
    never less than `least_gas` (what is not used costs nothing) and never more than `most_gas`.
    """

    chain_id: int = 1
    token: bytes = USDT_CONTRACTS[ERC20]
    finality: str | int = FINALIZED
    fee_cap_wei: int = 20_000_000_000_000_000
    stuck_blocks: int = 20
    least_gas: int = 100_000
    most_gas: int = 300_000
    name: str = ERC20
    currency: str = "USDT"


async def final_block(node: EvmNode, rules: EvmRules) -> Block:
    """The newest block that a node can no longer take back. Raises NodeFailed, NodeRefused."""
    if isinstance(rules.finality, str):
        block = await node.block(rules.finality)
    else:
        head = await head_block(node)
        block = await node.block(max(0, head.number - rules.finality))
    if block is None:
        raise NodeRefused(node.name, 0, "knows no final block")
    return block.header


async def head_block(node: EvmNode) -> Block:
    """The newest block of a node. Raises NodeFailed, NodeRefused."""
    block = await node.block("latest")
    if block is None:
        raise NodeRefused(node.name, 0, "knows no block")
    return block.header
