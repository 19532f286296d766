"""Carries merchants from home to their apart cells: a new book, and each change of settings.

Rules:
- Home commits first. From then on `merchant.carried_version` is behind `settings_version`, until the cell has
  the change and home notes it. So after a kill at any point, home says what is left to do.
- Who finds a merchant behind carries it: a web process that reads the merchant, and the worker each second.
  Carrying twice is harmless.
- Until a change is carried, the book accepts requests that were checked against the older settings.
- The cell's copy of the merchant changes with the version at the book, in one transaction, and only if the
  book's version is older. So a process that is late can't bring back old settings.
- Nothing waits in the default cell: there home's transaction changes the book too.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row

from merchant_wallet.base.cells import Cells
from merchant_wallet.base.db import Queries
from merchant_wallet.merchants.addresses import derive_own_addresses
from merchant_wallet.merchants.books import NewBook, change_book, open_book, read_closed_ms

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("carrying.sql"))
PAGE: Final = 1000
"""At most this many merchants are carried in one turn."""


async def carry(home: Connection, cell: Connection, cell_id: int, merchant_id: int) -> bool:
    """Bring a merchant's cell to its newest settings, and open its book if there is none.

    False if nothing was left to do, or the book is in another cell. Raises psycopg.Error.
    """
    at = {"merchant_id": merchant_id, "cell_id": cell_id}
    row = await _fetch(home, "read_waiting", at)
    if row is None or row["carried_version"] >= row["settings_version"]:
        return False
    async with home.transaction():
        if row["carried_version"] == 0 and await _fetch(home, "lock_unopened", at) is not None:
            await _open(home, cell, row)
        # A book that an earlier process opened may have older settings.
        await write_settings(cell, row)
        await home.execute(QUERIES["note_carried"].text, row)
    return True


async def write_settings(cell: Connection, row: Mapping[str, Any]) -> bool:
    """Write a merchant's settings as they were read from home. False if the cell has these or newer ones."""
    async with cell.transaction():
        if await change_book(cell, row["merchant_id"], row["settings_version"]) is None:
            return False
        await cell.execute(QUERIES["write_copy"].text, row)
        return True


async def _open(home: Connection, cell: Connection, row: Mapping[str, Any]) -> None:
    book = NewBook(
        row["merchant_id"],
        row["range_no"],
        row["settings_version"],
        max(row["created_ms"], await read_closed_ms(home)),
        derive_own_addresses(row["account_xpubs"]),
    )
    async with cell.transaction():
        await cell.execute(QUERIES["insert_copy"].text, row)
        await open_book(cell, book)


async def carry_waiting(home: Connection, cell: Connection, cell_id: int) -> int:
    """Carry all merchants that wait for this cell. Returns how many were carried. Raises psycopg.Error."""
    values = {"cell_id": cell_id, "limit": PAGE}
    waiting = await (await home.execute(QUERIES["list_waiting"].text, values)).fetchall()
    return sum([await carry(home, cell, cell_id, merchant_id) for (merchant_id,) in waiting])


async def find_and_carry(cells: Cells, merchant_id: int) -> bool:
    """Carry one merchant to whichever cell its book is in. Raises KeyError, CellClosed, psycopg.Error."""
    cell = await cells.find(merchant_id)
    if cell.is_home:
        return False
    async with await cells.connect_home() as home, await cells.connect(cell) as there:
        return await carry(home, there, cell.cell_id, merchant_id)


async def _fetch(conn: Connection, name: str, values: Mapping[str, Any]) -> DictRow | None:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(QUERIES[name].text, values)
        return await cursor.fetchone()
