"""Which apart cells' books were compared with their checkpoints, and when.

Rules:
- Home notes for each apart cell when the last comparison of all its books began, on home's clock.
- A cell's payouts begin after a comparison that began after they were started (see `processes.cell_workers`).
- A cell that does not answer is not compared (see `reached_cells`). The others are.

Statements are in `compared_cells.sql`. All raise `psycopg.Error`.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("compared_cells.sql"))

Connection = AsyncConnection[Any]


async def read_clock_ms(connection: Connection) -> int:
    """The time on the clock of home's server, or of a cell's."""
    row = await (await connection.execute(QUERIES["read_clock"].text)).fetchone()
    assert row is not None, "a query without a condition always has its row"
    return int(row[0])


async def note_compared(home: Connection, cell_ids: Collection[int], began_ms: int) -> None:
    """Note that all books of these cells were compared."""
    if cell_ids:
        values = {"cell_ids": sorted(cell_ids), "began_ms": began_ms}
        await home.execute(QUERIES["note_compared"].text, values)


async def is_compared_since(home: Connection, cell_id: int, since_ms: int) -> bool:
    """Whether a comparison of a cell began at a time or later, and has ended."""
    values = {"cell_id": cell_id, "since_ms": since_ms}
    return await (await home.execute(QUERIES["is_compared"].text, values)).fetchone() is not None
