"""Worker that opens a book whose mover died in the switch.

Before home's decision it opens the old copy, afterwards the new one. It takes a switch back in home first,
which the mover can't overrule. A copy that was not decided for is left to the next `merchant move`.
"""

import asyncio
from typing import Any, Final

import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.bell import REST_S
from merchant_wallet.base.cells import Cells
from merchant_wallet.base.workers import WorkerConnection, repeat
from merchant_wallet.merchants.cells import book_moves
from merchant_wallet.merchants.cells.book_moves import GRACE_MS, OPENING, SWITCHING, BookMove
from merchant_wallet.merchants.cells.book_moving import connect_to, open_again, open_decided
from merchant_wallet.merchants.cells.moves import MoveLost
from merchant_wallet.merchants.cells.takeover import INTERVAL_S, WORKER

log: Final = structlog.get_logger(__name__)


class BookTakeover:
    """Several of them, in several processes, are harmless."""

    def __init__(self, cells: Cells, *, grace_ms: int = GRACE_MS) -> None:
        self._home = WorkerConnection(cells.connect_home)
        self._cells = cells
        self._grace_ms = grace_ms

    async def run(self, stop: asyncio.Event, *, interval_s: float = INTERVAL_S) -> None:
        """Look for stalled moves until `stop` is set, then close the connection."""
        try:
            await repeat(
                "take-over of moves of books", self.take_over, stop=stop, interval_s=interval_s, rest_s=REST_S
            )
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._home.close()

    async def take_over(self) -> None:
        """Open every book whose mover died. Raises ExceptionGroup for those whose cells can't be reached."""
        home = await self._home.get()
        failures: list[Exception] = []
        for move in await book_moves.list_stalled(home, self._grace_ms):
            try:
                await self._open(home, move)
            except MoveLost:
                log.info("the mover was faster", merchant_id=move.merchant_id)
            except Exception as error:
                # A cell that is away does not delay the other books.
                failures.append(error)
        if failures:
            raise ExceptionGroup("books not opened", failures)

    async def _open(self, home: AsyncConnection[Any], move: BookMove) -> None:
        if move.state == SWITCHING:
            move = await book_moves.take_back(home, move, WORKER, "the mover died")
        await self._cells.refresh()
        is_decided = move.state == OPENING
        cell_id, name = (move.to_cell_id, move.to_cell) if is_decided else (move.from_cell_id, move.from_cell)
        async with await connect_to(self._cells, cell_id) as cell:
            await (open_decided if is_decided else open_again)(home, cell, move)
        log.warning("a book is open whose mover died", merchant_id=move.merchant_id, cell=name)
