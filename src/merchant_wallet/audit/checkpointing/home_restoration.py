"""What an acceptance brings home up to, if home was rolled back without its cells.

Home gives out what must be unique over all cells: ids of merchants, ranges of ids, addresses, versions of
settings. What cells have of these is given to home again, before it gives out more.

Rules:
- Cells are read first. Home changes in the transaction of the acceptance.
- Each step only raises a number or adds what is missing, so it may be repeated.
- A book of a merchant that home does not know stays as it is. Its id is given to nobody else.

Statements are in `home_restoration.sql`. All raise `psycopg.Error`.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from merchant_wallet.base.cells import Apart
from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("home_restoration.sql"))

Connection = AsyncConnection[Any]
Rows = list[tuple[Any, ...]]


class CellSeen(NamedTuple):
    """What a cell has of what home gives out: home's number, its books, and their addresses."""

    cell_id: int
    home_no: int
    books: Rows
    addresses: Rows


async def read_cells(apart: Apart) -> list[CellSeen]:
    """What all apart cells have of what home gives out."""
    return [
        CellSeen(
            cell_id,
            (await _fetch(cell, "read_seen"))[0][0],
            await _fetch(cell, "list_books"),
            await _fetch(cell, "list_addresses"),
        )
        for cell_id, cell in apart.items()
    ]


async def restore_home(home: Connection, seen: list[CellSeen]) -> None:
    """Give home what its cells have, in the caller's transaction."""
    for cell in seen:
        await home.execute(QUERIES["raise_mark"].text, {"cell_id": cell.cell_id, "home_no": cell.home_no})
        merchant_ids, id_ranges, next_ranges, versions = _columns(cell.books, 4)
        books = {"merchant_ids": merchant_ids, "id_ranges": id_ranges, "next_ranges": next_ranges}
        await home.execute(QUERIES["raise_merchant_id"].text, {"merchant_ids": merchant_ids})
        await home.execute(QUERIES["add_ranges"].text, books)
        settings = {"merchant_ids": merchant_ids, "versions": versions}
        await home.execute(QUERIES["raise_versions"].text, settings)
        owners, addresses = _columns(cell.addresses, 2)
        issued = {"merchant_ids": owners, "addresses": addresses}
        await home.execute(QUERIES["add_addresses"].text, issued)
        await home.execute(QUERIES["raise_indexes"].text, {"merchant_ids": owners})


def _columns(rows: Rows, count: int) -> list[list[Any]]:
    return [[row[place] for row in rows] for place in range(count)]


async def _fetch(connection: Connection, name: str) -> Rows:
    return await (await connection.execute(QUERIES[name].text)).fetchall()
