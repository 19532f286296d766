"""Payouts that nodes show in a block, and that wait for the block to be final.

Rules:
- Until a node calls that block final there is nothing to find, so nobody is asked about the transfer. One
  question for the final block serves all payouts under way.
- Some minutes later the nodes are asked all the same: the block may have left the chain.
- This decides nothing. When the block may be final, the payout is judged as always.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from merchant_wallet.chains.evm.node import EvmNodes
from merchant_wallet.chains.evm.rules import recent_final_block
from merchant_wallet.chains.evm.verdict import PayoutQuery
from merchant_wallet.chains.protocol import Pending, Verdict
from merchant_wallet.chains.recent import keep

LOOK_AGAIN: Final = 100
"""After so many times the age of a recent answer: five minutes on Ethereum."""
_KEPT: Final = 4096

_Hashes = tuple[str, ...]


class _Mined(NamedTuple):
    verdict: Pending
    number: int
    seen_s: float


class MinedTransfers:
    """The payouts of one chain that were seen in a block. `clock_s` counts seconds from any moment."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._mined: dict[_Hashes, _Mined] = {}

    def note(self, query: PayoutQuery, verdict: Verdict) -> None:
        """What was found about a payout just now."""
        key = _name(query)
        self._mined.pop(key, None)
        if isinstance(verdict, Pending) and verdict.mined_number is not None:
            keep(self._mined, key, _Mined(verdict, verdict.mined_number, self._clock_s()), _KEPT)

    async def find_waiting(self, nodes: EvmNodes, query: PayoutQuery) -> Pending | None:
        """What was found last, if nothing else can be found now. Raises ChainAway."""
        mined = self._mined.get(_name(query))
        if mined is None or self._clock_s() - mined.seen_s > LOOK_AGAIN * query.rules.recent_s:
            return None
        finals = await nodes.answers(lambda node: recent_final_block(node, query.rules))
        return mined.verdict if all(final.number < mined.number for final in finals) else None


def _name(query: PayoutQuery) -> _Hashes:
    return tuple(signed.tx_hash for signed in query.signed)
