"""Where new merchants go, and how many each cell has. Statements are in `placement.sql`."""

from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import class_row

from merchant_wallet.base.db import Queries

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("placement.sql"))
OPEN: Final = "open"
DRAINING: Final = "draining"


class CellUnknown(LookupError):
    """There is no cell of this name. The text is a sentence."""


class PlacementRefused(ValueError):
    """No merchant may be placed in this cell now. The text says why."""


class PlacedCell(NamedTuple):
    """A cell as home knows it. `address` is None for home's own database."""

    cell_id: int
    name: str
    schema_name: str
    address: str | None
    state: str
    version: int
    added_ms: int
    drained_ms: int | None
    merchants: int


async def choose_cell(home: Connection, name: str | None) -> int:
    """The cell for a new merchant: the one of this name, or the open one with the fewest merchants.

    Raises CellUnknown, PlacementRefused.
    """
    if name is None:
        row = await (await home.execute(QUERIES["find_emptiest"].text)).fetchone()
        if row is None:
            raise PlacementRefused("No cell is open for new merchants: `merchant-wallet cell list`.")
        return int(row[0])
    row = await (await home.execute(QUERIES["find_open_cell"].text, {"name": name})).fetchone()
    if row is None:
        raise CellUnknown(f"There is no cell {name}: `merchant-wallet cell list`.")
    if row[1] != OPEN:
        raise PlacementRefused(f"The cell {name} is {row[1]}: no merchant is placed there.")
    return int(row[0])


async def is_apart(home: Connection, merchant_id: int) -> bool:
    """Whether a merchant's book is in an apart cell. False for an unknown merchant."""
    row = await (await home.execute(QUERIES["find_apart"].text, {"merchant_id": merchant_id})).fetchone()
    return row is not None


async def list_cells(home: Connection) -> list[PlacedCell]:
    """All cells, the default cell first."""
    async with home.cursor(row_factory=class_row(PlacedCell)) as cursor:
        await cursor.execute(QUERIES["count_merchants"].text)
        return await cursor.fetchall()


async def set_state(home: Connection, name: str, state: str, now_ms: int) -> bool:
    """Open a cell for new merchants, or drain it. False if it is so already, is moved or closed.

    Raises CellUnknown.
    """
    values = {"name": name, "state": state, "now_ms": now_ms}
    if await (await home.execute(QUERIES["write_state"].text, values)).fetchone() is not None:
        return True
    if await (await home.execute(QUERIES["find_open_cell"].text, {"name": name})).fetchone() is None:
        raise CellUnknown(f"There is no cell {name}: `merchant-wallet cell list`.")
    return False
