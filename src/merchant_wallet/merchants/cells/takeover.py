"""Worker that opens a cell again whose mover died in the switch.

It takes the switch back in home, which the mover can't overrule, and then opens the old place. The copy at
the new place is left to the next `cell move`. A mover that died has lost its session with home, and so its
lock. One that hangs is given up after a time.
"""

import asyncio
from typing import Any, Final

import structlog
from psycopg import AsyncConnection

from merchant_wallet.base import db
from merchant_wallet.base.bell import REST_S
from merchant_wallet.base.workers import WorkerConnection, repeat
from merchant_wallet.merchants.cells import fence, moves
from merchant_wallet.merchants.cells.directory import Directory
from merchant_wallet.merchants.cells.moves import SWITCHING, TIMEOUT_MS, Auditor, CellMove, MoveLost
from merchant_wallet.merchants.cells.moving import open_again

INTERVAL_S: Final = 1.0
WORKER: Final = Auditor("worker", "worker")

log = structlog.get_logger(__name__)


class MoveTakeover:
    """Several of them, in several processes, are harmless."""

    def __init__(self, directory: Directory, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self._home = WorkerConnection(directory.connect_home)
        self._directory = directory
        self._timeout_ms = timeout_ms

    async def run(self, stop: asyncio.Event, *, interval_s: float = INTERVAL_S) -> None:
        """Look for stalled moves until `stop` is set, then close the connection."""
        try:
            await repeat(
                "take-over of moves", self.take_over, stop=stop, interval_s=interval_s, rest_s=REST_S
            )
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._home.close()

    async def take_over(self) -> None:
        """Open every cell again whose mover died. Raises ExceptionGroup for those that can't be reached."""
        home = await self._home.get()
        failures: list[Exception] = []
        for move in await moves.list_stalled(home, self._timeout_ms):
            try:
                await self._open(home, move)
            except MoveLost:
                log.info("the mover was faster", cell=move.name)
            except Exception as error:
                # A cell that is away does not delay the others.
                failures.append(error)
        if failures:
            raise ExceptionGroup("cells not opened again", failures)

    async def _open(self, home: AsyncConnection[Any], move: CellMove) -> None:
        # The directory in memory may be older than the move. So the place is taken from the move.
        cell = self._directory.make_cell(
            move.cell_id, move.name, move.schema_name, move.old_address, move.version, False
        )
        async with await db.connect(cell.url) as old:
            if await fence.read_moved_to(old) is not None:
                log.error("home was rolled back to before the end of a move, see doctor", cell=move.name)
                return
            if move.state == SWITCHING:
                move = await moves.take_back(home, move, WORKER, "the mover died")
            await open_again(home, old, move)
        log.warning("a cell that lost its mover is open again", cell=move.name)
