"""Connections to home and to all cells at once, for what looks at all books together."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import structlog
from psycopg import AsyncConnection, Error

from merchant_wallet.base.cells import Apart, Cell, Cells, Databases
from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.workers import Connect, WorkerConnection

CONNECT_S: Final = 5.0
"""A cell that does not answer a new connection within this time is away."""

log = structlog.get_logger(__name__)


class CellAway(TransientError):
    """A cell does not answer. The text is a sentence without its full stop."""


class CellConnections:
    """One connection to home and one to each apart cell. Each opens when it is used, and again after a loss.

    Without `cells` there is the default cell alone. Its connection is home's.
    """

    def __init__(self, connect: Connect, cells: Cells | None = None) -> None:
        self._home = WorkerConnection(connect)
        self._cells = cells
        self._apart: dict[Cell, WorkerConnection] = {}

    async def get_home(self) -> AsyncConnection:
        """Home's connection. Raises psycopg.OperationalError."""
        return await self._home.get()

    async def get(self) -> Databases:
        """All connections. Raises CellAway, and psycopg.OperationalError if home is away."""
        home = await self._home.get()
        found = await self._connect_apart()
        for cell, answer in found.items():
            if not isinstance(answer, AsyncConnection):
                raise CellAway(f"cell {cell.name} is away: {' '.join(str(answer).split())}") from answer
        return Databases(home, _by_id(found))

    async def reach_apart(self) -> Apart:
        """The connections to the apart cells that answer. Raises psycopg.OperationalError if home is away."""
        found = await self._connect_apart()
        for cell, answer in found.items():
            if isinstance(answer, BaseException):
                log.warning("a cell is away", cell=cell.name, reason=" ".join(str(answer).split()))
        return _by_id(found)

    async def _connect_apart(self) -> dict[Cell, AsyncConnection | Exception]:
        if self._cells is None:
            return {}
        await self._cells.refresh()
        await self._keep([cell for cell in self._cells.list() if not cell.is_home])
        answers = await asyncio.gather(*map(_try_to_connect, self._apart.values()))
        return dict(zip(self._apart, answers, strict=True))

    async def close(self) -> None:
        """Close all connections."""
        await self._home.close()
        await self._keep([])

    async def _keep(self, cells: Sequence[Cell]) -> None:
        """Have a connection for each of these cells, and no other. A cell that has moved is another one."""
        for gone in self._apart.keys() - set(cells):
            await self._apart.pop(gone).close()
        for cell in cells:
            if self._cells is not None and cell not in self._apart:
                self._apart[cell] = WorkerConnection(partial(self._cells.connect, cell))


@asynccontextmanager
async def reach_apart(cells: Cells) -> AsyncIterator[Apart]:
    """A connection to each apart cell that answers, for as long as the context lasts."""
    connections = CellConnections(cells.connect_home, cells)
    try:
        yield await connections.reach_apart()
    finally:
        await connections.close()


async def _try_to_connect(connection: WorkerConnection) -> AsyncConnection | Exception:
    try:
        async with asyncio.timeout(CONNECT_S):
            return await connection.get()
    except TimeoutError:
        return TimeoutError(f"no answer within {CONNECT_S:g} s")
    # A cell that is closed is one of the transient errors.
    except (Error, TransientError) as error:
        return error


def _by_id(found: dict[Cell, AsyncConnection | Exception]) -> Apart:
    return {cell.cell_id: answer for cell, answer in found.items() if isinstance(answer, AsyncConnection)}
