"""The schema of a cell's copy at its new place: made, given nonce partitions, and removed again.

A comment on the schema says which move made it. Without that comment no schema is removed, nor while the copy
is open. The comment goes when the move has succeeded.
"""

import asyncio
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection, sql

from merchant_wallet.base.db import Queries
from merchant_wallet.merchants.cells import fence
from merchant_wallet.merchants.cells.adding import CellRefused, check_server
from merchant_wallet.merchants.cells.fence import MOVED
from merchant_wallet.merchants.cells.moves import CellMove, MoveRefused
from merchant_wallet.postgres.grants import Side, grant
from merchant_wallet.postgres.migrate import list_pending, migrate

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("new_place.sql"))
DAYS_AHEAD: Final = 7
"""A copy gets partitions for so many days, so that it goes on while no mover runs."""


async def check_place(home: Connection, new: Connection, move: CellMove) -> None:
    """Check that the cell can be made at the new place. Raises MoveRefused."""
    try:
        await check_server(home, new, move.schema_name)
    except CellRefused as refused:
        raise MoveRefused(f"The new place: {refused}") from None
    row = await (await new.execute(QUERIES["read_mark"].text, {"schema": move.schema_name})).fetchone()
    if row is not None:
        raise MoveRefused(f"The new place has a schema {move.schema_name} already.")


async def require_migrated(url: str, schema: str) -> None:
    """Check that the old place has the tables of this program. Raises MoveRefused, MigrationError."""
    if await asyncio.to_thread(list_pending, url, schema=schema):
        raise MoveRefused("The old place has tables of an older program: run `merchant-wallet migrate`.")


async def require_same_tables(url: str, schema: str) -> None:
    """Check that the copy was made by this program. Raises MoveRefused, MigrationError."""
    if await asyncio.to_thread(list_pending, url, schema=schema):
        raise MoveRefused(
            "The copy was begun by an older program, and the cell has been migrated since: undo the move with"
            " --undo, and begin it again."
        )


async def make_empty(old: Connection, new: Connection, new_url: str, move: CellMove) -> None:
    """Make the schema anew, closed and with empty tables. Raises MoveRefused, GrantRefused, psycopg.Error."""
    if not await remove(new, move):
        raise MoveRefused(f"The new place has a schema {move.schema_name} that this move has not made.")
    name = sql.Identifier(move.schema_name)
    async with new.transaction():
        await new.execute(sql.SQL("create schema {}").format(name))
        await _write_mark(new, move.schema_name, move.mark)
    await asyncio.to_thread(migrate, new_url, _say_nothing, schema=move.schema_name)
    rows = await (await old.execute(QUERIES["list_roles"].text)).fetchall()
    roles = {Side(side): role for side, role in rows}
    await asyncio.to_thread(grant, new_url, roles, move.schema_name)
    await fence.begin_state(new, move.cell_id, move.version)


async def is_ours(new: Connection, move: CellMove) -> bool:
    """Whether the schema exists with its tables, and this move made it."""
    row = await (await new.execute(QUERIES["read_mark"].text, {"schema": move.schema_name})).fetchone()
    return row == (move.mark,) and await _fetch(new, "has_state") == (True,)


async def remove(new: Connection, move: CellMove) -> bool:
    """Remove the schema if this move made it. False if it is somebody else's. Raises MoveRefused."""
    async with new.transaction():
        values = {"schema": move.schema_name}
        row = await (await new.execute(QUERIES["read_mark"].text, values)).fetchone()
        if row == (move.mark,):
            await _drop_closed(new, move.schema_name)
        return row in (None, (move.mark,))


async def drop_old(old: Connection, move: CellMove) -> None:
    """Drop the old copy after the switch, if it exists. Raises MoveRefused."""
    async with old.transaction():
        row = await (await old.execute(QUERIES["read_mark"].text, {"schema": move.schema_name})).fetchone()
        if row is None:
            return
        if row[0] is not None and not row[0].startswith(MOVED):
            raise MoveRefused(f"Another move uses the schema {move.schema_name} at the old place.")
        await _drop_closed(old, move.schema_name)


async def _drop_closed(connection: Connection, schema: str) -> None:
    if await _fetch(connection, "has_state") == (True,):
        state = await (await connection.execute(QUERIES["lock_state"].text)).fetchone()
        if state == (True,):
            raise MoveRefused(f"The schema {schema} there is open for the service, and is not removed.")
    await connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(schema)))


async def clear_mark(new: Connection, move: CellMove) -> None:
    """The copy is the cell now."""
    await _write_mark(new, move.schema_name, None)


async def note_moved(old: Connection, move: CellMove) -> None:
    """Let the old place, if it is still there, say where the cell is now."""
    row = await (await old.execute(QUERIES["read_mark"].text, {"schema": move.schema_name})).fetchone()
    if row is not None:
        await _write_mark(old, move.schema_name, f"{MOVED}{move.address}")


async def make_usable(old: Connection, url: str, schema: str) -> None:
    """Undo what the end of a move did to an old place, before a person has it opened again.

    If it has tables of an older program, `migrate` gives the rights.
    """
    if not await asyncio.to_thread(list_pending, url, schema=schema):
        await asyncio.to_thread(grant, url, None, schema)
    await _write_mark(old, schema, None)


async def _write_mark(new: Connection, schema: str, mark: str | None) -> None:
    comment = sql.SQL("comment on schema {} is {}")
    await new.execute(comment.format(sql.Identifier(schema), sql.Literal(mark)))


async def add_nonce_days(old: Connection, new: Connection) -> None:
    """Give the new place all days that the old place has, and some more."""
    first, last, today = await _fetch(old, "list_days")
    days = {"first_day": first or today, "last_day": max(last, today + DAYS_AHEAD)}
    await new.execute(QUERIES["add_nonce_days"].text, days)


async def analyze(new: Connection, schema: str, tables: list[str]) -> None:
    """Count the copied rows for the planner. Autovacuum would do that some time after the switch."""
    names = sql.SQL(", ").join(sql.Identifier(schema, table) for table in tables)
    await new.execute(sql.SQL("analyze {}").format(names))


async def revoke_writes(old: Connection, schema: str) -> None:
    """Take the right to write at the old place from the service's roles."""
    for _, role in await (await old.execute(QUERIES["list_roles"].text)).fetchall():
        statement = sql.SQL("revoke insert, update, delete, truncate on all tables in schema {} from {}")
        await old.execute(statement.format(sql.Identifier(schema), sql.Identifier(role)))


async def _fetch(connection: Connection, query: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = await (await connection.execute(QUERIES[query].text)).fetchone()
    assert row is not None, "these queries always have a row"
    return row


def _say_nothing(_: str) -> None:
    """The progress of migrations is of no interest here."""
