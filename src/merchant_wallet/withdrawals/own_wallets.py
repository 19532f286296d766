"""Our own wallets, for the acceptance of withdrawals. Money sent there would come back to us.

Rules: the wallets that are or were ours are read from the database from time to time. The payer looks again
before it signs.
"""

import asyncio

from merchant_wallet.base.workers import Connect, WorkerConnection, repeat
from merchant_wallet.merchants.own_addresses import list_wallets

REFRESH_INTERVAL_S = 10.0


class OwnWallets:
    """The 20-byte addresses of our hot and cold wallets, also former ones, as they were read last."""

    def __init__(self, connect: Connect) -> None:
        self._addresses: frozenset[bytes] = frozenset()
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
        self._addresses = await list_wallets(await self._worker_connection.get())
