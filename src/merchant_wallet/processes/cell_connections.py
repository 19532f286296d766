"""Connections to home and to all cells at once, for what looks at all books together."""

from collections.abc import Sequence
from functools import partial

from psycopg import AsyncConnection, Error

from merchant_wallet.base.cells import Cell, Cells, Databases
from merchant_wallet.base.db import TransientError
from merchant_wallet.base.workers import Connect, WorkerConnection


class CellAway(Exception):
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
        found = [home]
        if self._cells is not None:
            await self._cells.refresh()
            await self._keep([cell for cell in self._cells.list() if not cell.is_home])
        for cell, connection in self._apart.items():
            try:
                found.append(await connection.get())
            except (Error, TransientError) as error:
                raise CellAway(f"cell {cell.name} is away: {' '.join(str(error).split())}") from error
        return Databases(home, found)

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
