"""The directory: in which cell each merchant's book is, in memory.

- Home's tables `cell` and `merchant` say it. They are read when the directory is first used, and again when a
  cell or a merchant is unknown or refused; the table of cells at most once a second, and more often while a
  cell is closed for a moment.
- An outdated directory is harmless: a book or a cell that has moved is closed in its old place, and its
  refusal makes the directory read again.
- With one cell there is nothing to look up.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

import psycopg
from psycopg import AsyncConnection

from merchant_wallet.base import db
from merchant_wallet.base.cells import DEFAULT_CELL_ID, DEFAULT_CELL_NAME, Cell, CellClosed
from merchant_wallet.base.db import Queries
from merchant_wallet.postgres.migration_files import find_required_version, read_cell_migrations

QUERIES: Final = Queries(Path(__file__).with_name("cells.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}
MAX_MERCHANTS: Final = 100_000
"""The cells of at most this many merchants are kept."""
REFRESH_S: Final = 1.0
"""The table of cells is read at most this often once it is known."""
SWITCH_REFRESH_S: Final = 0.1
"""As `REFRESH_S`, while a cell was found closed: it may be open again at any moment."""
SWITCH_S: Final = 10.0
"""After this time a closed cell counts as one that stays closed."""


class Directory:
    """Home and all cells, as the user of `url`.

    `urls` are the URLs of cells, by name, that need other users or other addresses than home's table says.
    """

    def __init__(
        self,
        url: str,
        urls: Mapping[str, str] = MappingProxyType({}),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._urls = urls
        self._monotonic = monotonic
        self._cells = {DEFAULT_CELL_ID: Cell(DEFAULT_CELL_ID, DEFAULT_CELL_NAME, url)}
        self._cell_ids: OrderedDict[int, int] = OrderedDict()
        self._is_read = False
        self._tried_s = 0.0
        self._closed_s: float | None = None
        self._reading: asyncio.Task[None] | None = None
        self._finding = asyncio.Lock()
        self._wanted: set[int] = set()

    async def connect_home(self) -> AsyncConnection:
        """A connection to home. Raises psycopg.OperationalError."""
        return await db.connect(self._url)

    async def connect(self, cell: Cell) -> AsyncConnection:
        """A connection to a cell that is open there too. It leads to where the cell is now.

        Raises CellClosed, psycopg.Error.
        """
        known = self.newest(cell)
        try:
            return await _connect(known)
        except (CellClosed, psycopg.OperationalError) as error:
            if isinstance(error, CellClosed):
                self.note_closed()
            await self.refresh()
            moved = self._cells.get(cell.cell_id)
            if moved is None or moved is known:
                raise
        return await _connect(moved)

    def list(self) -> Sequence[Cell]:
        """All cells as they were read last, the default cell first."""
        return tuple(self._cells.values())

    def newest(self, cell: Cell) -> Cell:
        """The cell as it is known now. It may have moved since."""
        return self._cells.get(cell.cell_id, cell)

    def known(self, merchant_id: int) -> Cell | None:
        """The cell of a merchant's book, without asking the database; None if it must be read."""
        if not self._is_read:
            return None
        assumed = DEFAULT_CELL_ID if len(self._cells) == 1 else None
        cell_id = self._cell_ids.get(merchant_id, assumed)
        return None if cell_id is None else self._cells.get(cell_id)

    def note(self, merchant_id: int, cell_id: int) -> None:
        """Remember the cell of a merchant's book, as it was just read from home."""
        if self._is_read and len(self._cells) == 1 and cell_id == DEFAULT_CELL_ID:
            self.forget(merchant_id)
            return
        self._cell_ids[merchant_id] = cell_id
        if len(self._cell_ids) > MAX_MERCHANTS:
            self._cell_ids.popitem(last=False)

    def forget(self, merchant_id: int) -> None:
        """Look the merchant up again: its book is not open where it was believed to be."""
        self._cell_ids.pop(merchant_id, None)

    async def find(self, merchant_id: int) -> Cell:
        """The cell of a merchant's book.

        Raises KeyError for an unknown merchant, CellClosed for a cell that is not known yet, psycopg.Error.
        """
        if (cell := self.known(merchant_id)) is not None:
            return cell
        await self.refresh()
        if (cell := self.known(merchant_id)) is not None:
            return cell
        self._wanted.add(merchant_id)
        async with self._finding:
            if (cell := self.known(merchant_id)) is not None:
                return cell
            cell_id = await self._find_wanted(merchant_id)
        if (cell := self.known(merchant_id)) is None:
            raise CellClosed(f"cell {cell_id} is not known yet")
        return cell

    async def _find_wanted(self, merchant_id: int) -> int:
        """Look up this merchant, and all that others wait for: a burst of requests is one question."""
        wanted, self._wanted = {merchant_id, *self._wanted}, set()
        async with await self.connect_home() as connection:
            cursor = await connection.execute(_TEXTS["find_cells"], {"merchant_ids": sorted(wanted)})
            found: dict[int, int] = dict(await cursor.fetchall())
        for known_id, cell_id in found.items():
            self.note(known_id, cell_id)
        return found[merchant_id]

    def note_closed(self) -> None:
        """A cell was found closed. It may be open again, here or elsewhere, in a moment."""
        if self._closed_s is None:
            self._closed_s = self._monotonic()

    @property
    def is_fresh(self) -> bool:
        """Whether the table of cells needs no other read now."""
        now_s, closed_s = self._monotonic(), self._closed_s
        is_switching = closed_s is not None and now_s - closed_s < SWITCH_S
        usual_s = SWITCH_REFRESH_S if is_switching else REFRESH_S
        return self._is_read and now_s - self._tried_s < usual_s

    async def refresh(self) -> None:
        """Read the table of cells, unless that was tried just now. Raises psycopg.Error."""
        if self._reading is None:
            if self.is_fresh:
                return
            self._tried_s = self._monotonic()
            self._reading = asyncio.create_task(self._read())
            self._reading.add_done_callback(self._note_end)
        await asyncio.shield(self._reading)

    async def refresh_with(self, home: AsyncConnection) -> None:
        """Read the table of cells over the caller's connection to home, unless that was tried just now."""
        if not self.is_fresh:
            self._tried_s = self._monotonic()
            await self._read_from(home)

    async def find_now(self, home: AsyncConnection, merchant_ids: Collection[int]) -> dict[int, Cell]:
        """The cells of merchants' books as home says now. An unknown merchant is in the default cell.

        Raises CellClosed for a cell that is not known yet, psycopg.Error.
        """
        await self.refresh_with(home)
        if len(self._cells) == 1:
            return dict.fromkeys(merchant_ids, self._cells[DEFAULT_CELL_ID])
        values = {"merchant_ids": list(merchant_ids)}
        rows = await (await home.execute(_TEXTS["find_cells"], values)).fetchall()
        found = dict.fromkeys(merchant_ids, DEFAULT_CELL_ID) | {row[0]: row[1] for row in rows}
        if unknown := set(found.values()) - self._cells.keys():
            raise CellClosed(f"cell {min(unknown)} is not known yet")
        return {merchant_id: self._cells[cell_id] for merchant_id, cell_id in found.items()}

    def _note_end(self, reading: asyncio.Task[None]) -> None:
        self._reading = None
        if not reading.cancelled():
            # Whoever waits gets the error too. Nobody may be left to wait.
            reading.exception()

    async def _read(self) -> None:
        async with await self.connect_home() as connection:
            await self._read_from(connection)

    async def _read_from(self, home: AsyncConnection) -> None:
        rows = await (await home.execute(_TEXTS["list_cells"])).fetchall()
        read = (self.make_cell(*row) for row in rows)
        # A cell that did not change stays the same object.
        before, self._cells = self._cells, {cell.cell_id: self._keep(cell) for cell in read}
        self._is_read = True
        if any(cell is not before.get(cell.cell_id) for cell in self._cells.values()):
            self._closed_s = None
        if not all(cell.is_open for cell in self._cells.values()):
            self.note_closed()

    def _keep(self, cell: Cell) -> Cell:
        before = self._cells.get(cell.cell_id)
        return before if before == cell else cell

    def make_cell(
        self,
        cell_id: int,
        name: str,
        schema: str,
        address: str | None,
        version: int,
        is_open: bool,
        admin_address: str | None = None,
    ) -> Cell:
        """A cell as home's table says, with the URL of this process for it."""
        if cell_id == DEFAULT_CELL_ID:
            return Cell(cell_id, name, self._url, schema, version, is_open)
        own = self._urls.get(name)
        if own is not None and db.names_place(own):
            url = db.place(own, None, schema)
        else:
            url = db.place(db.as_user(self._url, own), address, schema)
        admin_url = None if admin_address is None else db.for_writing(db.place(url, admin_address, schema))
        return Cell(cell_id, name, db.for_writing(url), schema, version, is_open, admin_url)


async def _connect(cell: Cell) -> AsyncConnection:
    connection = await db.connect(cell.url)
    try:
        await require_cell(connection, cell)
    except BaseException:
        await connection.close()
        raise
    return connection


async def choose_plans(connection: AsyncConnection) -> None:
    """Let PostgreSQL choose custom plans for a writer's statements where Citus places the cell's tables.

    Citus has no generic plan for `insert … select`.
    """
    await connection.execute(_TEXTS["choose_plans"])


async def require_cell(connection: AsyncConnection, cell: Cell) -> None:
    """Check that a new connection leads to an open cell, and to the one that is meant. Raises CellClosed."""
    if cell.is_home:
        return
    try:
        row = await (await connection.execute(_TEXTS["read_state"])).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InsufficientPrivilege) as error:
        raise CellClosed(f"cell {cell.name} has no tables for this program: {error}") from error
    if row is None or tuple(row[:3]) != (cell.cell_id, cell.version, True):
        raise CellClosed(f"cell {cell.name} is closed or has moved")
    if row[3] < _find_required():
        raise CellClosed(
            f"cell {cell.name} has tables of an older program, {row[3]} of {_find_required()}:"
            " run `merchant-wallet migrate`"
        )


@lru_cache(maxsize=1)
def _find_required() -> int:
    return find_required_version(read_cell_migrations())
