"""The chain's conditions that the nodes report before something is signed: gas price, height, coin balance.

Rules:
- Every configured node is asked, and the cautious answer counts: `fees.agree_fees` for gas, the lowest
  height, the lowest balance. With three answers no single node decides.
- One answer is enough, so a payout does not wait for a node that is down. If only one node answers, it sets
  price, height and balance. The fee cap limits what that can cost.
- If two nodes are far apart in height, nothing is signed. One of them is wrong, and nobody knows which.
"""

import asyncio
from typing import Final

import msgspec

from merchant_wallet.chains.agreement import cautious_high, cautious_low
from merchant_wallet.chains.evm.fees import Offer, agree_fees, suggest_offer
from merchant_wallet.chains.evm.node import EvmFees, EvmNode, EvmNodes
from merchant_wallet.chains.evm.rules import EvmRules, read_head_block
from merchant_wallet.chains.protocol import Blocked, Obstacle
from merchant_wallet.chains.transport import answer_of, attempt

FEE_BLOCKS: Final = 10


class ChainConditions(msgspec.Struct, frozen=True, gc=False):
    """The fee offer, the chain's height, and the wallet's balance in wei."""

    offer: Offer
    height: int
    held_wei: int


async def read_fees(nodes: EvmNodes) -> EvmFees:
    """The gas price by all nodes that answer. Raises ChainAway."""
    return agree_fees(await nodes.answers(lambda node: node.fees(FEE_BLOCKS)))


async def read_conditions(nodes: EvmNodes, rules: EvmRules, wallet: bytes) -> ChainConditions:
    """The present conditions, from all nodes. Raises ChainAway, Blocked."""

    async def ask(node: EvmNode) -> tuple[int, int]:
        head, held = await asyncio.gather(attempt(read_head_block(node)), attempt(node.coin_balance(wallet)))
        return answer_of(head).number, answer_of(held)

    priced, answered = await asyncio.gather(attempt(read_fees(nodes)), attempt(nodes.answers(ask)))
    fees, said = answer_of(priced), answer_of(answered)
    heights = [height for height, _ in said]
    low, high = cautious_low(heights), cautious_high(heights)
    if high - low > rules.stuck_blocks:
        text = f"nodes are at blocks {low} and {high}: one is behind, or ahead"
        raise Blocked(Obstacle("node", text))
    offer = suggest_offer(fees, rules.min_tip_wei)
    return ChainConditions(offer, low, cautious_low([held_wei for _, held_wei in said]))
