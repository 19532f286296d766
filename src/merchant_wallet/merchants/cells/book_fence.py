"""The fence of one copy of a book: it is closed and opened by numbered steps, and its writers are waited for.

- A copy takes on higher numbers only (column `move_version`). Home gives each step a number of its own.
- Who closes a book waits for the transactions that held locks for writing then. Later ones see it closed (see
  `book.closed_books`). After both, nothing writes to the book there.
- A closed copy that is being filled is written to by the mover with its number alone.
"""

import asyncio
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("book_fence.sql"))
POLL_S: Final = 0.005


async def close_copy(cell: Connection, merchant_id: int, move_version: int) -> bool:
    """Close a copy. False if it has this number or a higher one, or is not here."""
    return await _set_open(cell, merchant_id, move_version, is_open=False)


async def open_copy(cell: Connection, merchant_id: int, move_version: int) -> bool:
    """Open a copy. False if it has this number or a higher one, or is not here."""
    return await _set_open(cell, merchant_id, move_version, is_open=True)


async def _set_open(cell: Connection, merchant_id: int, move_version: int, *, is_open: bool) -> bool:
    values = {
        "merchant_id": merchant_id,
        "move_version": move_version,
        "is_open": is_open,
        "version": uuid4(),
    }
    return bool((await cell.execute(QUERIES["set_open"].text, values)).rowcount)


async def is_open(cell: Connection, merchant_id: int) -> bool | None:
    """Whether a copy is open. None if there is none."""
    values = {"merchant_id": merchant_id}
    row = await (await cell.execute(QUERIES["read_state"].text, values)).fetchone()
    return None if row is None else bool(row[0])


async def take_up_copy(cell: Connection, merchant_id: int, move_version: int) -> bool:
    """Be the one who fills a closed copy. False if a later mover does, it is open, or it is not here."""
    return await _touch(cell, "take_up_copy", merchant_id, move_version)


async def lock_copy(cell: Connection, merchant_id: int, move_version: int) -> bool:
    """Begin a transaction that writes to the closed copy. False if it may not."""
    return await _touch(cell, "lock_copy", merchant_id, move_version)


async def _touch(cell: Connection, name: str, merchant_id: int, move_version: int) -> bool:
    values = {"merchant_id": merchant_id, "move_version": move_version}
    return bool((await cell.execute(QUERIES[name].text, values)).rowcount)


async def write_settings_version(cell: Connection, merchant_id: int, settings_version: int) -> None:
    """Tell a closed copy the version of its merchant's settings."""
    values = {"merchant_id": merchant_id, "settings_version": settings_version}
    await cell.execute(QUERIES["write_settings_version"].text, values)


async def wait_for_writers(cell: Connection) -> None:
    """Wait until all transactions have ended that may have seen a book open which is closed by now."""
    rows = await (await cell.execute(QUERIES["list_writers"].text)).fetchall()
    writers = {"writers": [writer for (writer,) in rows]}
    while writers["writers"]:
        left = await (await cell.execute(QUERIES["count_writers"].text, writers)).fetchone()
        if left == (0,):
            return
        await asyncio.sleep(POLL_S)
