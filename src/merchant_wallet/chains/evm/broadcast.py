"""Sending signed bytes to the nodes, and what their refusals teach.

Rules:
- A node that has the transaction, or whose chain has used its nonce, needs no bytes, whatever it says. It is
  asked for both. Known words only spare the question.
- One node that takes or has the transaction is enough.
- One node alone can't cause a dearer replacement: `NodeRefused` needs as many refusals as a verdict. A node
  that is asked too much has not refused the bytes.
- A least tip counts if as many refusals name one. The lowest is used, for `LEARNED_S`.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Final

from merchant_wallet.chains.evm.node import EvmNode, EvmNodes
from merchant_wallet.chains.evm.transactions import hash_of, parse_signed, recover_sender
from merchant_wallet.chains.protocol import ChainAway
from merchant_wallet.chains.transport import NodeRefused

LEARNED_S: Final = 3_600.0

# Texts of geth, Nethermind, Erigon, Besu, anvil and hardhat for a known transaction or a used nonce.
_KNOWN: Final = re.compile(
    r"\b(already ?known|known transaction|already imported|same hash|old ?nonce|nonce (is )?too low)\b",
    re.IGNORECASE,
)
# geth: "transaction gas price below minimum: gas tip cap 1, minimum needed 1000000000".
_LEAST_TIP: Final = re.compile(r"tip cap \d+, minimum needed (\d+)")


class Broadcaster:
    """Sends bytes to every node of one chain."""

    def __init__(self, nodes: EvmNodes, min_tip_wei: int) -> None:
        self._nodes = nodes
        self._min_tip_wei = min_tip_wei
        self._learned_wei = 0
        self._learned_s = float("-inf")

    @property
    def least_tip_wei(self) -> int:
        """The least tip for a unit of gas: that of the rules, or what the nodes ask for."""
        age_s = asyncio.get_running_loop().time() - self._learned_s
        return max(self._min_tip_wei, self._learned_wei if age_s < LEARNED_S else 0)

    async def broadcast(self, raw: bytes) -> None:
        """Send the bytes to every node. It is enough if one takes or has them.

        Raises NodeRefused with the first refusal if enough nodes refuse, otherwise ChainAway.
        """
        answers = await self._nodes.every(lambda node: _send(node, raw))
        if any(answer is None for answer in answers):
            return
        refusals = [one for one in answers if isinstance(one, NodeRefused) and not one.is_overload]
        if len(refusals) < self._nodes.quorum:
            raise ChainAway("; ".join(map(str, answers)))
        self._learn(refusals)
        raise refusals[0]

    def _learn(self, refusals: Sequence[NodeRefused]) -> None:
        named = [found for refused in refusals if (found := _LEAST_TIP.search(refused.message))]
        if len(named) >= self._nodes.quorum:
            self._learned_wei = min(int(found[1]) for found in named)
            self._learned_s = asyncio.get_running_loop().time()


async def _send(node: EvmNode, raw: bytes) -> None:
    try:
        await node.send(raw)
    except NodeRefused as refused:
        if not _KNOWN.search(refused.message) and not await _has(node, raw):
            raise


async def _has(node: EvmNode, raw: bytes) -> bool:
    """Whether a node has the transaction, or a block that used its nonce. Raises NodeFailed."""
    try:
        if await node.knows(hash_of(raw)):
            return True
        transaction, _ = parse_signed(raw)
        return await node.count(recover_sender(raw), "latest") > transaction.nonce
    except NodeRefused:
        # Its plan lacks the question. Its refusal stands.
        return False
