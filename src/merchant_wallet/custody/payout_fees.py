"""Worker that reads what payouts have cost on their chains: gas, and on TRON what was burnt for energy.

Rules:
- It follows the payouts that have ended, so a payout never waits for it. A chain that is away is asked later.
- Of everything that was signed for an order, what is in a final block has a fee. The rest has none.
- Fees and the place behind them are one commit.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.base.workers import Connect, WorkerConnection, repeat
from merchant_wallet.chains.protocol import ChainAway

QUERIES: Final = Queries(Path(__file__).with_name("payout_fees.sql"))
PAGE_ROWS: Final = 50
INTERVAL_S: Final = 60.0

log = structlog.get_logger(__name__)


class FeeReader(Protocol):
    """A chain that knows what a transaction has cost."""

    async def fee_of(self, tx_hash: str) -> int | None: ...


class PayoutFees:
    """The worker, for all chains with nodes."""

    def __init__(self, connect: Connect, chains: Mapping[str, FeeReader]) -> None:
        self._worker_connection = WorkerConnection(connect)
        self._chains = chains

    async def run(self, stop: asyncio.Event, *, interval_s: float = INTERVAL_S) -> None:
        """Work until `stop` is set, then close the connection."""
        try:
            await repeat("payout fees", self.run_once, stop=stop, interval_s=interval_s)
        finally:
            await self._worker_connection.close()

    async def run_once(self) -> None:
        """Read what is missing of each chain. Raises `psycopg.Error`."""
        for chain, reader in self._chains.items():
            try:
                while await read_page(await self._worker_connection.get(), chain, reader):
                    pass
            except ChainAway as away:
                log.info("fees of payouts are read later", chain=chain, reason=str(away))


async def read_page(connection: AsyncConnection[Any], chain: str, reader: FeeReader) -> bool:
    """Read the fees of the next ended payouts. Returns whether there were some. Raises ChainAway."""
    row = await (await connection.execute(QUERIES["read_place"].text, {"chain": chain})).fetchone()
    values: dict[str, Any] = {"chain": chain, "after": row[0] if row else 0, "page": PAGE_ROWS}
    ended = await (await connection.execute(QUERIES["list_ended"].text, values)).fetchall()
    if not ended:
        return False
    found = []
    for _, tx_hash, signed_ms in ended:
        if tx_hash is not None and (fee := await reader.fee_of(tx_hash)) is not None:
            found.append((tx_hash, fee, signed_ms))
    values |= {"tx_hashes": [one[0] for one in found], "fees": [one[1] for one in found]}
    values |= {"moments": [one[2] for one in found], "ended_no": ended[-1][0]}
    async with connection.transaction():
        await connection.execute(QUERIES["add_fees"].text, values)
        await connection.execute(QUERIES["move_place"].text, values)
    return True
