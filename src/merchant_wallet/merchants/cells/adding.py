"""Adds a cell: makes its schema, with everything that books need, and tells home last.

Rules:
- A comment on the schema says that the cell is being added. It goes when home knows the cell. A schema with
  other contents is never touched.
- Until home has the cell's row nothing is placed there. So a command that was interrupted is repeated, and
  goes on or begins again.
- Home stores where the cell is, and never a password.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection, sql
from psycopg.rows import namedtuple_row

from merchant_wallet.base import db
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.merchants.cells.citus import distribute
from merchant_wallet.merchants.cells.mirroring import mirror
from merchant_wallet.postgres.grants import Side, grant
from merchant_wallet.postgres.migrate import migrate

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("adding.sql"))
MIN_VERSION: Final = 150_000
MAX_SKEW_MS: Final = 2_000
"""The clocks of home's and the cell's server may differ by this much."""


class CellRefused(ValueError):
    """The cell can't be added. The text says why."""


class NewCell(NamedTuple):
    """A cell to add. `address` is what home stores; None for home's own database. `url` is the owner's.

    With `is_distributed` these are the coordinator's, and Citus places the schema on a node.
    """

    name: str
    schema: str
    address: str | None
    url: str
    is_distributed: bool = False

    @property
    def mark(self) -> str:
        """The comment on the schema while the cell is being added."""
        return f"merchant-wallet: cell {self.name} is being added"


class AddedCell(NamedTuple):
    """What home stores of a cell that is ready. `admin_address` is the coordinator, if Citus places it."""

    cell_id: int
    name: str
    schema: str
    address: str | None
    admin_address: str | None


async def add_cell(
    home: Connection, cell: NewCell, now_ms: int, progress: Callable[[str], None]
) -> AddedCell | None:
    """Make the cell's schema, and return what to insert. None if home has the cell already.

    The caller holds `locked`, and calls `insert_cell` next. Raises CellRefused, GrantRefused, MigrationError,
    NoCitus, psycopg.Error.
    """
    found = await (await home.execute(QUERIES["find_cell"].text, {"name": cell.name})).fetchone()
    if found is not None:
        schema, address, admin_address, _ = found[1:]
        if (schema, admin_address if cell.is_distributed else address) != (cell.schema, cell.address):
            raise CellRefused(f"There is a cell {cell.name} already, at another place.")
        return None
    roles = {Side(side): role for side, role in await _fetch_all(home, "list_roles")}
    async with await db.connect(db.place(cell.url, None, db.HOME_SCHEMA)) as connection:
        await check_server(home, connection, cell.schema)
        await _check_schema(connection, cell)
        await _mark(connection, cell)
    url = db.place(cell.url, None, cell.schema)
    await asyncio.to_thread(migrate, url, progress, schema=cell.schema)
    await asyncio.to_thread(grant, url, roles, cell.schema)
    [(cell_id,)] = await _fetch_all(home, "read_next_id")
    async with await db.connect(url) as connection:
        await ensure_nonce_partitions(connection, now_ms // DAY_MS)
        async with connection.transaction():
            await connection.execute(QUERIES["clear_state"].text)
            await connection.execute(QUERIES["begin_state"].text, {"cell_id": cell_id})
        await mirror(home, connection)
        address, admin_address = cell.address, None
        if cell.is_distributed:
            assert cell.address is not None, "the coordinator is another server"
            address, admin_address = await distribute(connection, cell.schema, cell.address), cell.address
    return AddedCell(int(cell_id), cell.name, cell.schema, address, admin_address)


async def insert_cell(home: Connection, cell: AddedCell, now_ms: int) -> None:
    """Tell home of the cell, in the caller's transaction."""
    await home.execute(QUERIES["insert_cell"].text, {"now_ms": now_ms, **cell._asdict()})


async def finish(cell: NewCell) -> None:
    """The cell is added: remove the comment from its schema."""
    async with await db.connect(db.place(cell.url, None, cell.schema)) as connection:
        await _comment(connection, cell.schema, None)


@asynccontextmanager
async def locked(home: Connection) -> AsyncIterator[None]:
    """Let one command at a time add cells."""
    await home.execute(QUERIES["lock_cells"].text)
    try:
        yield
    finally:
        await home.execute(QUERIES["unlock_cells"].text)


async def check_server(home: Connection, connection: Connection, schema: str) -> None:
    """Check that a cell can be on this server. Raises CellRefused."""
    home_ms, server = await _read_clock(home), await _read_server(connection, schema)
    if server.version < MIN_VERSION:
        raise CellRefused(f"The server is PostgreSQL {server.version // 10000}; a cell needs 15 or newer.")
    if server.is_standby:
        raise CellRefused("The server is a standby: give the URL of the primary, or of all hosts.")
    if not (server.may_create or server.exists):
        raise CellRefused(
            f"The role {server.role} may not create a schema there: as the database's owner type"
            f" `grant create on database {server.database} to {server.role}`."
        )
    if server.encoding != "UTF8":
        raise CellRefused(f"The database has the encoding {server.encoding}; a cell needs UTF8.")
    if (skew_ms := abs(server.clock_ms - home_ms)) > MAX_SKEW_MS:
        raise CellRefused(
            f"The clocks of home's server and of this one differ by {skew_ms / 1000:.1f} s, at most"
            f" {MAX_SKEW_MS / 1000:g} s are allowed."
        )


async def _check_schema(connection: Connection, cell: NewCell) -> None:
    server = await _read_server(connection, cell.schema)
    if server.mark not in ("", cell.mark) or (server.mark == "" and server.relations):
        raise CellRefused(f"The schema {cell.schema} there is in use: give another one with --schema.")


async def _read_server(connection: Connection, schema: str) -> Any:
    async with connection.cursor(row_factory=namedtuple_row) as cursor:
        await cursor.execute(QUERIES["read_server"].text, {"schema": schema})
        return await cursor.fetchone()


async def _read_clock(home: Connection) -> int:
    [row] = await _fetch_all(home, "read_server", schema=db.HOME_SCHEMA)
    return int(row[2])


async def _mark(connection: Connection, cell: NewCell) -> None:
    async with connection.transaction():
        create = sql.SQL("create schema if not exists {}")
        await connection.execute(create.format(sql.Identifier(cell.schema)))
        await _comment(connection, cell.schema, cell.mark)


async def _comment(connection: Connection, schema: str, text: str | None) -> None:
    comment = sql.SQL("comment on schema {} is {}")
    await connection.execute(comment.format(sql.Identifier(schema), sql.Literal(text)))


async def _fetch_all(connection: Connection, name: str, **values: object) -> list[tuple[Any, ...]]:
    return await (await connection.execute(QUERIES[name].text, values or None)).fetchall()
