"""The cells that answer a comparison, and what each says of its own books.

A cell that does not answer is left out, and delays the others only for a limited time.

Statements are in `reached_cells.sql`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import psycopg
import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.cells import DEFAULT_CELL_ID, Apart
from merchant_wallet.base.db import Queries
from merchant_wallet.base.workers import describe_error

QUERIES: Final = Queries(Path(__file__).with_name("reached_cells.sql"))
ASK_S: Final = 10.0
"""A cell that does not answer a question within this time is away."""

Connection = AsyncConnection[Any]
T = TypeVar("T")

log = structlog.get_logger(__name__)


class ReachedCells:
    """The default cell and the apart cells that answer. `away`: those that were needed and did not."""

    def __init__(self, home: Connection, apart: Apart) -> None:
        self.away: set[int] = set()
        self._home = home
        self._apart = apart

    @property
    def apart_ids(self) -> Sequence[int]:
        """The apart cells that answered when this began."""
        return list(self._apart)

    async def find_cells(self, merchant_ids: Sequence[int]) -> dict[int, int]:
        """The cell of each merchant's book, as home says. It is the default cell for unknown merchants."""
        cursor = await self._home.execute(QUERIES["list_apart"].text, {"merchant_ids": merchant_ids})
        return dict.fromkeys(merchant_ids, DEFAULT_CELL_ID) | dict(await cursor.fetchall())

    async def ask(self, cell_id: int, ask: Callable[[Connection], Awaitable[list[T]]]) -> list[T]:
        """What a cell answers; nothing if it is away. Raises psycopg.Error of the default cell."""
        if cell_id == DEFAULT_CELL_ID:
            return await ask(self._home)
        connection = self._apart.get(cell_id)
        if connection is None or cell_id in self.away:
            self.away.add(cell_id)
            return []
        try:
            async with asyncio.timeout(ASK_S):
                return await ask(connection)
        except (psycopg.OperationalError, TimeoutError) as error:
            self.away.add(cell_id)
            log.warning("a cell could not be compared", cell_id=cell_id, reason=describe_error(error))
            # Whatever it is busy with, nobody waits for its answer any more.
            await connection.close()
            return []

    def group(self, items: Iterable[T], cell_ids: Iterable[int]) -> dict[int, list[T]]:
        """The items by their cells."""
        grouped: dict[int, list[T]] = {}
        for item, cell_id in zip(items, cell_ids, strict=True):
            grouped.setdefault(cell_id, []).append(item)
        return grouped
