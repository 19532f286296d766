"""The chain's conditions that the nodes report before something is signed: gas price, height, coin balance.

Rules:
- Every configured node is asked, and the cautious answer counts: `fees.agree_fees` for gas, the lowest
  height, the lowest balance. With three answers no single node decides.
- One answer is enough, so a payout does not wait for a node that is down. If only one node answers, it sets
  price, height and balance. The fee cap limits what that can cost.
- If two nodes are far apart in height, nothing is signed. One of them is wrong, and nobody knows which.
- The wallet must hold what all its transactions together may cost. Nodes refuse the one that is too much.
- A wallet with code of its own (EIP-7702) has one transaction on its way at a time. Nodes refuse a second
  one.
"""

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from merchant_wallet.base.chains import STATE_BLOCKS
from merchant_wallet.chains.agreement import cautious_high, cautious_low
from merchant_wallet.chains.evm.fees import Offer, agree_fees, most_of, suggest_offer
from merchant_wallet.chains.evm.node import EvmFees, EvmNode, EvmNodes
from merchant_wallet.chains.evm.rules import EvmRules, read_final_block, read_head_block
from merchant_wallet.chains.evm.transactions import EvmTransaction, parse_signed
from merchant_wallet.chains.protocol import Blocked, ChainAway, Obstacle
from merchant_wallet.chains.transport import answer_of, attempt

FEE_BLOCKS: Final = 10


class ChainConditions(msgspec.Struct, frozen=True, gc=False):
    """The fee offer, the chain's height, the wallet's balance in wei, and whether it has code (EIP-7702)."""

    offer: Offer
    height: int
    held_wei: int
    has_code: bool


async def read_fees(nodes: EvmNodes) -> EvmFees:
    """The gas price by all nodes that answer. Raises ChainAway."""
    return agree_fees(await nodes.answers(lambda node: node.fees(FEE_BLOCKS), is_urgent=True))


class _Said(msgspec.Struct, frozen=True, gc=False):
    """What all nodes that answer say: the gas price, and each one's height and the wallet's wei there."""

    fees: EvmFees
    at_heads: Sequence[tuple[int, int]]
    has_code: bool


async def read_conditions(nodes: EvmNodes, rules: EvmRules, wallet: bytes) -> ChainConditions:
    """The recent conditions, from all nodes. Raises ChainAway, Blocked."""
    said = await nodes.recent.read(("conditions", wallet), lambda: _ask_conditions(nodes, wallet))
    heights = [height for height, _ in said.at_heads]
    low, high = cautious_low(heights), cautious_high(heights)
    if high - low > rules.stuck_blocks:
        text = f"nodes are at blocks {low} and {high}: one is behind, or ahead"
        raise Blocked(Obstacle("node", text))
    offer = suggest_offer(said.fees, rules.min_tip_wei)
    held_wei = cautious_low([held_wei for _, held_wei in said.at_heads])
    return ChainConditions(offer, low, held_wei, said.has_code)


async def _ask_conditions(nodes: EvmNodes, wallet: bytes) -> _Said:
    async def ask(node: EvmNode) -> tuple[int, int]:
        head, held = await asyncio.gather(attempt(read_head_block(node)), attempt(node.coin_balance(wallet)))
        return answer_of(head).number, answer_of(held)

    priced, answered, found = await asyncio.gather(
        attempt(read_fees(nodes)),
        attempt(nodes.answers(ask, is_urgent=True)),
        attempt(nodes.first(lambda node: node.code(wallet))),
    )
    return _Said(answer_of(priced), answer_of(answered), bool(answer_of(found)))


async def require_coin(
    nodes: EvmNodes,
    wallet: bytes,
    conditions: ChainConditions,
    cost_wei: int,
    pending: Sequence[bytes | None] = (),
    nonce: int | None = None,
) -> None:
    """Check that the wallet can pay for a transaction besides `pending`, and may send it now.

    `pending`: see `protocol.Payout`. What is not signed yet counts like this one. Raises Blocked, ChainAway.
    """
    others = [None if raw is None else _read(raw) for raw in pending]
    held_wei = conditions.held_wei
    if others and (held_wei < _sum_most(others, cost_wei) or conditions.has_code):
        # Some of them may be in blocks already, and a balance that is read now is without their cost.
        used = cautious_low(await nodes.answers(lambda node: node.count(wallet, "latest")))
        others = [other for other in others if other is None or other.nonce >= used]
        held_wei = cautious_low(await nodes.answers(lambda node: node.coin_balance(wallet)))
    needed_wei = _sum_most(others, cost_wei)
    if held_wei < needed_wei:
        besides = f", {len(others)} more on their way included" if others else ""
        text = f"the hot wallet holds {held_wei} wei of {needed_wei} for the fee{besides}"
        raise Blocked(Obstacle("fuel", text))
    if conditions.has_code and any(other is None or nonce is None or other.nonce < nonce for other in others):
        text = "the hot wallet has delegated code (EIP-7702), so nodes take its payouts one at a time"
        raise Blocked(Obstacle("node", text))


async def require_state(nodes: EvmNodes, rules: EvmRules, away: ChainAway) -> None:
    """Check that nodes which do not answer for the final block can have its state.

    Raises Blocked, ChainAway, NodeRefused.
    """
    head = await nodes.first(read_head_block)
    final = await nodes.first(lambda node: read_final_block(node, rules))
    if (depth := head.number - final.number) > STATE_BLOCKS:
        text = (
            f"state not available: the final block is {depth} blocks below the newest, and a full node keeps "
            f"the state of {STATE_BLOCKS}. Payouts continue when blocks become final again, or with an "
            f"archive node ({away})"
        )
        raise Blocked(Obstacle("node", text)) from away


@lru_cache(maxsize=4096)
def _read(raw: bytes) -> EvmTransaction:
    """Every signature asks for the same pending bytes, hundreds of them on a busy day."""
    transaction, _ = parse_signed(raw)
    return transaction


def _sum_most(others: Sequence[EvmTransaction | None], cost_wei: int) -> int:
    return cost_wei + sum(cost_wei if other is None else most_of(other) for other in others)
