"""An operator's settings for an EVM chain, and which of a node's blocks are final by them."""

from typing import Final

import msgspec

from merchant_wallet.base.chains import CHAINS, ERC20, MIN_GAS, count_base_units
from merchant_wallet.base.currencies import USDT
from merchant_wallet.chains.evm.node import EvmBlock, EvmNode
from merchant_wallet.chains.evm.transactions import encode_transfer_call
from merchant_wallet.chains.protocol import Block
from merchant_wallet.chains.transport import NodeRefused

_USUAL: Final = CHAINS[ERC20]


class EvmRules(msgspec.Struct, frozen=True, gc=False):
    """The rules of one chain.

    `finality`: the chain's own tag `finalized`, or the number of blocks above a final block. `fee_cap_wei`:
    the most that one payout may cost. `min_tip_wei`: the least tip per unit of gas above the base fee.
    Without a tip a block's builder has no reason to take the transaction. `stuck_blocks`: a transaction that
    could have been mined for this many blocks is replaced. Gas limits are an estimate plus a quarter, at
    least `min_gas` (unused gas costs nothing) and at most `max_gas`. `recent_s` is how old an answer may be
    that is the same for all orders (see `recent`).
    """

    chain_id: int = _USUAL.chain_id
    token: bytes = _USUAL.token
    token_decimals: int = _USUAL.token_decimals
    finality: str | int = _USUAL.finality
    fee_cap_wei: int = _USUAL.fee_cap
    min_tip_wei: int = _USUAL.min_tip
    stuck_blocks: int = _USUAL.stuck_blocks
    min_gas: int = MIN_GAS
    max_gas: int = 300_000
    recent_s: float = _USUAL.recent_s
    name: str = ERC20
    currency: str = USDT

    @property
    def base_units(self) -> int:
        """How many of the token's smallest units are one unit of the ledger."""
        return count_base_units(self.token_decimals)

    def encode_transfer_call(self, recipient: bytes, amount_units: int) -> bytes:
        """The call data that moves exactly this many units of the ledger. Raises ValueError."""
        return encode_transfer_call(recipient, amount_units * self.base_units)


async def read_final_block(node: EvmNode, rules: EvmRules) -> Block:
    """The newest block that a node can no longer take back. Raises NodeFailed, NodeRefused."""
    if isinstance(rules.finality, str):
        return (await _read_tagged_block(node, rules.finality)).header
    head = await read_head_block(node)
    block = await node.block(max(0, head.number - rules.finality))
    if block is None:
        raise NodeRefused(node.name, 0, "knows no final block")
    return block.header


async def recent_final_block(node: EvmNode, rules: EvmRules) -> Block:
    """A recent `read_final_block`."""
    return await node.recently("final", lambda: read_final_block(node, rules))


async def _read_tagged_block(node: EvmNode, tag: str) -> EvmBlock:
    """Without one some nodes refuse, others answer null: just started, or without a consensus client."""
    try:
        block = await node.block(tag)
    except NodeRefused as refused:
        raise NodeRefused(node.name, refused.code, f"has no {tag} block: {refused.message}") from None
    if block is None:
        raise NodeRefused(node.name, 0, f"has no {tag} block")
    return block


async def read_head_block(node: EvmNode) -> Block:
    """The newest block of a node. Raises NodeFailed, NodeRefused."""
    return (await read_head(node)).header


async def recent_head_block(node: EvmNode) -> Block:
    """A recent `read_head_block`."""
    return (await node.recently("head", lambda: read_head(node))).header


async def read_head(node: EvmNode) -> EvmBlock:
    """The newest block of a node, with its transactions' hashes. Raises NodeFailed, NodeRefused."""
    block = await node.block("latest")
    if block is None:
        raise NodeRefused(node.name, 0, "knows no block")
    return block
