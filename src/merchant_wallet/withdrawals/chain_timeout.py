"""A chain whose calls time out, so that no worker hangs on it.

Rule: it adds only the timeout. A TimeoutError proves nothing about the call. Its text names the chain.
"""

from collections.abc import Awaitable, Sequence
from typing import Final, TypeVar

from merchant_wallet.base.workers import limit_time
from merchant_wallet.chains.protocol import Chain, Payout, SignedTransfer, Transfer, Verdict

CHAIN_TIMEOUT_S: Final = 30.0

Answer = TypeVar("Answer")


class ChainWithTimeout:
    """One chain with a timeout of `CHAIN_TIMEOUT_S` (see `chains.protocol.Chain`)."""

    def __init__(self, name: str, chain: Chain) -> None:
        self._name = name
        self._chain = chain

    @property
    def wallet(self) -> bytes:
        """The hot wallet that pays, 20 bytes."""
        return self._chain.wallet

    @property
    def has_nonces(self) -> bool:
        """Whether the wallet's transactions have EVM nonces."""
        return self._chain.has_nonces

    async def next_nonce(self, known: int | None, *, is_first: bool) -> int:
        """The nonce after the last one that is certain. Raises Blocked."""
        return await self._limit(self._chain.next_nonce(known, is_first=is_first))

    async def funds(self) -> int:
        """Units that the wallet certainly holds."""
        return await self._limit(self._chain.funds())

    async def check_payable(self, transfer: Transfer) -> None:
        """Check that a transfer could be paid now. Raises Unpayable, Blocked."""
        await self._limit(self._chain.check_payable(transfer))

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        """Build and sign a transfer. Raises Unpayable, Blocked."""
        return await self._limit(self._chain.build(payout, earlier))

    async def build_cancel(self, nonce: int, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        """Sign a transaction that moves nothing. Raises Blocked."""
        return await self._limit(self._chain.build_cancel(nonce, earlier))

    async def broadcast(self, raw: bytes) -> None:
        """Send the bytes to the chain."""
        await self._limit(self._chain.broadcast(raw))

    async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        """What became of a payout."""
        return await self._limit(self._chain.judge(payout, signed))

    async def _limit(self, asked: Awaitable[Answer]) -> Answer:
        async with limit_time(CHAIN_TIMEOUT_S, f"{self._name}: no answer of nodes and signer"):
            return await asked
