"""What a cell says of itself, for people: books, size, speed, and how far its standbys and copies are behind.

Statements are in `inspection.sql`.
"""

import asyncio
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import AsyncConnection

from merchant_wallet.base.cells import Cell, Cells
from merchant_wallet.base.db import Queries
from merchant_wallet.base.errors import TransientError

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("inspection.sql"))
SAMPLE_S: Final = 1.0
"""The speed is measured over this time."""
TIMEOUT_S: Final = 6.0


class CellLook(NamedTuple):
    """A cell as it is now. `mirror_age_ms` is the age of its copies of rates; None in the default cell."""

    books: int
    entries: int
    entries_per_s: float
    size_bytes: int
    mirror_age_ms: int | None
    standby_lag_ms: int | None


class CellState(NamedTuple):
    """What `doctor` compares. `fence` is the cell's id, version, and whether it is open, as the cell says.

    `now_ms` is the cell's clock, which was read between two readings of home's. `waiting` counts merchants
    whose changes the cell does not have.
    """

    fence: tuple[int, int, bool] | None
    home_before_ms: int
    now_ms: int
    home_after_ms: int
    mirror_age_ms: int
    merchants: int
    waiting: int


async def read_state(home: Connection, cell: Connection, cell_id: int) -> CellState:
    """The state of an apart cell, as the cell says it and as home does. Raises psycopg.Error."""
    fence = await (await cell.execute(QUERIES["read_fence"].text)).fetchone()
    before_ms = (await _fetch(home, "read_clock"))[0]
    now_ms = (await _fetch(cell, "read_clock"))[0]
    after_ms = (await _fetch(home, "read_clock"))[0]
    mirrored = await (await cell.execute(QUERIES["read_mirror"].text)).fetchone()
    counted = await (await home.execute(QUERIES["count_waiting"].text, {"cell_id": cell_id})).fetchone()
    assert counted is not None, "a count always has a row"
    checked_ms = 0 if mirrored is None else mirrored[0]
    return CellState(fence, before_ms, now_ms, after_ms, max(0, now_ms - checked_ms), *counted)


async def look_at(cells: Cells, cell: Cell) -> CellLook | str:
    """Look at a cell for a second. If it does not answer, why."""
    try:
        async with asyncio.timeout(TIMEOUT_S), await cells.connect(cell) as connection:
            return await _look(connection)
    except TimeoutError:
        return f"no answer within {TIMEOUT_S:g} seconds"
    except (psycopg.Error, TransientError) as error:
        return " ".join(str(error).split())


async def _look(connection: Connection) -> CellLook:
    _, before, before_ms = await _fetch(connection, "count_entries")
    await asyncio.sleep(SAMPLE_S)
    books, entries, now_ms = await _fetch(connection, "count_entries")
    size_bytes, standby_lag_ms = await _fetch(connection, "read_server")
    mirrored = await (await connection.execute(QUERIES["read_mirror"].text)).fetchone()
    speed = 1000 * (entries - before) / max(1, now_ms - before_ms)
    age_ms = None if mirrored is None else max(0, now_ms - mirrored[0])
    return CellLook(books, entries, round(speed, 1), size_bytes, age_ms, standby_lag_ms)


async def _fetch(connection: Connection, name: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = await (await connection.execute(QUERIES[name].text)).fetchone()
    assert row is not None, "these queries always have a row"
    return row
