"""Worker that keeps one apart cell up to date with home: rates, evidence, new merchants, changed settings."""

import asyncio
from typing import Final

import structlog

from merchant_wallet.base.cells import CellClosed
from merchant_wallet.base.db import is_database_away
from merchant_wallet.base.workers import Connect, WorkerConnection, repeat
from merchant_wallet.merchants.cells.carrying import carry_waiting
from merchant_wallet.merchants.cells.mirroring import mirror

INTERVAL_S: Final = 1.0

log = structlog.get_logger(__name__)


class CellUpdates:
    """One apart cell's worker. Several of them for one cell, in several processes, are harmless.

    It sets `away` whenever the cell, or home, does not answer.
    """

    def __init__(
        self,
        cell_id: int,
        connect_home: Connect,
        connect_cell: Connect,
        away: asyncio.Event | None = None,
    ) -> None:
        self._away = away or asyncio.Event()
        self._cell_id = cell_id
        self._home = WorkerConnection(connect_home)
        self._cell = WorkerConnection(connect_cell)

    async def run(self, stop: asyncio.Event, *, interval_s: float = INTERVAL_S) -> None:
        """Update the cell until `stop` is set, then close the connections."""
        try:
            await repeat(f"updates of cell {self._cell_id}", self.update, stop=stop, interval_s=interval_s)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._home.close()
        await self._cell.close()

    async def update(self) -> None:
        """Bring the cell up to date once. Raises CellClosed, psycopg.Error."""
        try:
            home, cell = await self._home.get(), await self._cell.get()
            await mirror(home, cell)
            if carried := await carry_waiting(home, cell, self._cell_id):
                log.info("merchants carried to their cell", cell_id=self._cell_id, merchants=carried)
        except Exception as error:
            if isinstance(error, CellClosed) or is_database_away(error):
                self._away.set()
            raise
