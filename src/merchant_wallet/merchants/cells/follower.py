"""Worker that follows Citus: it looks at the coordinator's catalogue, and uses the node that it names.

It looks once a minute, and about each second while the cell does not answer.
"""

import asyncio
from typing import Final

import structlog

from merchant_wallet.audit.records import Author
from merchant_wallet.base import db
from merchant_wallet.base.cells import Cell
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.workers import WorkerConnection, repeat
from merchant_wallet.merchants.cells import citus
from merchant_wallet.merchants.cells.directory import Directory

INTERVAL_S: Final = 60.0

log = structlog.get_logger(__name__)


class CellFollower:
    """One cell's worker. It looks at once when `away` is set: the cell does not answer.

    Several of them, in several processes, are harmless.
    """

    def __init__(self, directory: Directory, cell: Cell, away: asyncio.Event) -> None:
        self._away = away
        self._directory = directory
        self._name = cell.name
        self._home = WorkerConnection(directory.connect_home)
        self._coordinator = WorkerConnection(lambda: db.connect(cell.table_url))
        self._cause = ""

    async def run(self, stop: asyncio.Event, *, interval_s: float = INTERVAL_S) -> None:
        """Follow until `stop` is set, then close the connections."""
        name = f"place of cell {self._name}"
        try:
            await repeat(name, self.look, stop=stop, interval_s=interval_s, wake=self._away)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._home.close()
        await self._coordinator.close()

    async def look(self) -> None:
        """Use the node that Citus names. Raises NoCitus, psycopg.Error."""
        home, coordinator = await self._home.get(), await self._coordinator.get()
        place = await citus.read_place(home, self._name)
        author = Author("worker", "worker", now_ms())
        try:
            address = await citus.follow(
                home, coordinator, self._directory, place, author, accepts_older=False
            )
        except citus.PlaceChanged:
            log.info("another process has followed Citus", cell=self._name)
        except citus.NotFollowed as refused:
            # It looks again each second. The log needs each cause once.
            if str(refused) != self._cause:
                log.error("a cell's node is not followed", cell=self._name, reason=str(refused))
            self._cause = str(refused)
        else:
            self._cause = ""
            if address != place.address:
                log.warning("a cell's node was followed", cell=self._name, address=address)
