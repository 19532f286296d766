"""The worker that has an apart cell take in the final transfers of all chains from home's record.

The default cell's are taken in by each chain's watcher (see `watcher`).
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from merchant_wallet.base.bell import REST_S
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.workers import Connect, WorkerConnection, repeat
from merchant_wallet.deposits import deposit_store, intake

POLL_INTERVAL_S: Final = 1.0

log = structlog.get_logger(__name__)


class IntakeWorker:
    """One apart cell's worker. Amounts below `minimum_units` are dust."""

    def __init__(
        self,
        connect_home: Connect,
        connect_cell: Connect,
        cell_id: int,
        chains: Sequence[str],
        *,
        minimum_units: int,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._home = WorkerConnection(connect_home)
        self._cell = WorkerConnection(connect_cell)
        self._cell_id = cell_id
        self._chains = chains
        self._minimum_units = minimum_units
        self._clock = clock
        self._knows_minimum: set[str] = set()

    async def run(self, stop: asyncio.Event, *, interval_s: float = POLL_INTERVAL_S) -> None:
        """Take in until told to stop, then close the connections."""
        try:
            name = f"intake of cell {self._cell_id}"
            await repeat(name, self.take_in_all, stop=stop, interval_s=interval_s, rest_s=REST_S)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._home.close()
        await self._cell.close()

    async def take_in_all(self) -> None:
        """Take in everything that home has for the cell. Raises psycopg.Error."""
        home, cell = await self._home.get(), await self._cell.get()
        for chain in self._chains:
            if chain not in self._knows_minimum:
                # The minimum may have been lowered since the last start.
                await deposit_store.raise_all_dust(cell, chain, self._minimum_units)
                self._knows_minimum.add(chain)
            while await intake.take_in(
                home,
                cell,
                chain,
                cell_id=self._cell_id,
                minimum_units=self._minimum_units,
                now_ms=self._clock(),
            ):
                log.info("takes in transfers", chain=chain, cell_id=self._cell_id)
