"""The addresses that no withdrawal may go to. Money sent there would be lost or would come back to us.

Rules: the zero address and the tokens' contracts are fixed. The wallets that are or were ours are read from
the database from time to time. The payer looks again before it signs.
"""

import asyncio
from collections.abc import Iterable

from merchant_wallet.base.workers import Connect, WorkerConnection, repeat
from merchant_wallet.merchants.own_addresses import list_wallets

REFRESH_INTERVAL_S = 10.0


class ForbiddenAddresses:
    """A set of 20-byte addresses that grows with our wallets."""

    def __init__(self, fixed: Iterable[bytes], connect: Connect) -> None:
        self._fixed = frozenset(fixed)
        self._addresses = self._fixed
        self._worker_connection = WorkerConnection(connect)

    def __contains__(self, address: object) -> bool:
        return address in self._addresses

    async def run(self, stop: asyncio.Event) -> None:
        """Read our wallets again and again until told to stop. If that fails, the last result stays."""
        try:
            await repeat("own wallets", self.refresh, stop=stop, interval_s=REFRESH_INTERVAL_S)
        finally:
            await self._worker_connection.close()

    async def refresh(self) -> None:
        """Read our wallets. Raises `psycopg.Error`."""
        self._addresses = self._fixed | await list_wallets(await self._worker_connection.get())
