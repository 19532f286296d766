"""The tables that hold a book's rows, as the catalogue of its cell has them.

Rules:
- Every table of a cell with a column `merchant_id` belongs to its merchants' books. So a new table is moved
  without a change here.
- The cell's copy of the merchant moves too. In home the platform's own row is there already.
- Two tables have rows that are only added, in the order of their key: the journal. Nonces are only added on
  the day of the book's clock. What is before is sealed: it is copied and compared once.
- `book` has columns of the copy itself: whether it is open, and who may write to it.
"""

from collections.abc import Iterable, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import class_row

from merchant_wallet.base.db import Queries
from merchant_wallet.merchants.cells.moves import MoveRefused
from merchant_wallet.postgres.places import CELL

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("book_tables.sql"))
MERCHANT: Final = "merchant"
BOOK: Final = "book"
JOURNAL: Final = ("entry", "posting")
"""Their rows are never changed, and have ascending ids of entries."""
NONCE: Final = "nonce"
SEALED_BY: Final = {"entry": "entry_id", "posting": "entry_id", NONCE: "day"}
"""The column that says which rows can't change any more."""
OWN_COLUMNS: Final = frozenset({"is_open", "move_version", "version"})
"""The columns of `book` that each copy has for itself."""


class BookTable(NamedTuple):
    """A table. `columns` are those that are copied; `key` is its primary key."""

    name: str
    columns: list[str]
    key: list[str]
    referenced: list[str]


async def list_tables(old: Connection, new: Connection, *, to_home: bool) -> list[BookTable]:
    """The tables that move from one cell to another; each comes after those that it refers to.

    Raises MoveRefused if the cells' tables differ.
    """
    there, here = await _read(old), await _read(new)
    if to_home:
        there.pop(MERCHANT)
        here.pop(MERCHANT)
    elif MERCHANT in here:
        # Home's table has more columns than an apart cell's copy of it.
        there[MERCHANT] = here[MERCHANT]
    if _shape(there) != _shape(here):
        raise MoveRefused("The tables of the two cells differ: run `merchant-wallet migrate`.")
    return [_choose_columns(here[name]) for name in _order(here.values())]


def _shape(tables: dict[str, BookTable]) -> dict[str, tuple[set[str], list[str]]]:
    return {name: (set(table.columns), table.key) for name, table in tables.items()}


def _order(tables: Iterable[BookTable]) -> Sequence[str]:
    names = {table.name: table.referenced for table in tables}
    graph = {name: [one for one in referenced if one in names] for name, referenced in names.items()}
    return list(TopologicalSorter(graph).static_order())


def _choose_columns(table: BookTable) -> BookTable:
    if table.name != BOOK:
        return table
    return table._replace(columns=[name for name in table.columns if name not in OWN_COLUMNS])


async def _read(cell: Connection) -> dict[str, BookTable]:
    async with cell.cursor(row_factory=class_row(BookTable)) as cursor:
        await cursor.execute(QUERIES["list_tables"].text, {"tables": [MERCHANT, *sorted(CELL)]})
        return {table.name: table for table in await cursor.fetchall()}
