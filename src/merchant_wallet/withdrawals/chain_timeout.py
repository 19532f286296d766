"""A chain whose answers come in time or not at all: a worker must not hang on one.

Rules: nothing is added but the limit. Raises TimeoutError for an answer that does not come, which proves
nothing about what was asked.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Final, TypeVar

from merchant_wallet.chains.protocol import Chain, Payout, SignedTransfer, Transfer, Verdict

CHAIN_TIMEOUT_S: Final = 30.0

Answer = TypeVar("Answer")


class ChainWithTimeout:
    """One chain, asked with patience of `CHAIN_TIMEOUT_S` (see `chains.protocol.Chain`)."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain

    @property
    def wallet(self) -> bytes:
        """The hot wallet that pays, 20 bytes."""
        return self._chain.wallet

    @property
    def has_nonces(self) -> bool:
        """Whether the wallet's transactions have numbered places."""
        return self._chain.has_nonces

    async def next_nonce(self, known: int | None, *, is_first: bool) -> int:
        """The place after the last one that is certain. Raises Blocked."""
        return await _with_timeout(self._chain.next_nonce(known, is_first=is_first))

    async def funds(self) -> int:
        """Units that the wallet holds for certain."""
        return await _with_timeout(self._chain.funds())

    async def check_payable(self, transfer: Transfer) -> None:
        """See that a transfer could be paid now. Raises Unpayable, Blocked."""
        await _with_timeout(self._chain.check_payable(transfer))

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        """Make and sign a transfer. Raises Unpayable, Blocked."""
        return await _with_timeout(self._chain.build(payout, earlier))

    async def build_cancel(self, nonce: int, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        """A transaction that moves nothing. Raises Blocked."""
        return await _with_timeout(self._chain.build_cancel(nonce, earlier))

    async def broadcast(self, raw: bytes) -> None:
        """Hand bytes to the chain."""
        await _with_timeout(self._chain.broadcast(raw))

    async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        """What became of a payout."""
        return await _with_timeout(self._chain.judge(payout, signed))


async def _with_timeout(asked: Awaitable[Answer]) -> Answer:
    async with asyncio.timeout(CHAIN_TIMEOUT_S):
        return await asked
