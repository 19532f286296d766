"""The fence of a cell: a row of each copy that says whether the service may use it, and the end of sessions.

- A new connection looks at the row and is refused if the copy is closed (see `directory.require_cell`).
- Writers compare it with each batch. What else the service does in a cell does not.
- So closing a copy is two steps: the row, and then the end of all sessions that were open before. After both,
  nothing of the service writes there.
- Between the two, writers get a moment to finish: the row lets them begin nothing, and a COMMIT that is cut
  off leaves its merchant without an answer.
- A person's own session is not ended. If its transaction has written there, the mover waits for its end.
- A copy takes on higher versions only. Home gives each step a version of its own.
- After the switch the closed place says where the cell is now. If home is restored to before, that place is
  not opened again, and the new one is found (see `places`).
- Anybody who owns that schema may have written it. So it names a server and a database, and nothing else of
  it is used.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection, ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from merchant_wallet.base import db
from merchant_wallet.base.db import Queries
from merchant_wallet.book import connection as book_connection

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("fence.sql"))
POLL_S: Final = 0.005
MOVED: Final = "merchant-wallet: moved to "
"""The comment on the schema of an old place begins so, and then has the new address."""
ADDRESS: Final = ("host", "hostaddr", "port", "dbname")
"""What is taken from that comment."""
UNREADABLE: Final = ""
"""The place of a cell that has moved, if the comment names no server and database."""
GRACE_S: Final = 0.25
"""Writers get this long to finish what they have begun."""


async def read_moved_to(cell: Connection) -> str | None:
    """Where the cell has moved to, as the schema of its old place says. None if it says nothing."""
    row = await (await cell.execute(QUERIES["read_comment"].text)).fetchone()
    comment = None if row is None else row[0]
    if comment is None or not comment.startswith(MOVED):
        return None
    return parse_address(comment.removeprefix(MOVED))


def parse_address(text: str) -> str:
    """The server and the database that a text names, or UNREADABLE. Pure."""
    try:
        named = conninfo_to_dict(text)
    except ProgrammingError:
        return UNREADABLE
    kept = {name: str(value) for name, value in named.items() if name in ADDRESS and value}
    counts = {len(kept[name].split(",")) for name in ("host", "hostaddr") if name in kept}
    ports = kept["port"].split(",") if "port" in kept else []
    is_sound = (
        len(counts) == 1
        and all(port.isascii() and port.isdigit() for port in ports)
        and len(ports) in {0, 1, *counts}
        # A name that is a connection string by itself would bring its own parameters.
        and not {"=", ":", "/"} & set(kept.get("dbname", ""))
        and all(value.isprintable() for value in kept.values())
    )
    return make_conninfo("", **kept) if is_sound else UNREADABLE


async def begin_state(cell: Connection, cell_id: int, version: int) -> None:
    """Give a new copy its row, closed. A row that exists stays."""
    await cell.execute(QUERIES["begin_state"].text, {"cell_id": cell_id, "version": version})


async def close_copy(cell: Connection, cell_id: int, version: int) -> bool:
    """Close a copy. False if it has this version or a higher one."""
    return await _set_state(cell, cell_id, version, is_open=False)


async def open_copy(cell: Connection, cell_id: int, version: int) -> bool:
    """Open a copy. False if it has this version or a higher one."""
    return await _set_state(cell, cell_id, version, is_open=True)


async def raise_version(cell: Connection, cell_id: int, version: int) -> bool:
    """Give an open copy a version, so that everybody connects anew. False if it is closed, or not older."""
    values = {"cell_id": cell_id, "version": version}
    return bool((await cell.execute(QUERIES["raise_version"].text, values)).rowcount)


async def _set_state(cell: Connection, cell_id: int, version: int, *, is_open: bool) -> bool:
    values = {"cell_id": cell_id, "version": version, "is_open": is_open}
    return bool((await cell.execute(QUERIES["set_state"].text, values)).rowcount)


async def drain(admin: Connection, schema: str, progress: Callable[[str], None]) -> None:
    """Wait until nobody writes any more in a copy that is closed by now. The service's sessions are ended.

    `admin` must be allowed to see and to end them. Raises psycopg.Error.
    """
    await wait_for_writers(admin, schema)
    await end_sessions(admin, schema)
    await wait_for_people(admin, schema, progress)


async def wait_for_writers(admin: Connection, schema: str) -> None:
    """Wait a moment until no writer of a closed copy is in a transaction. Raises psycopg.Error."""
    values = {"name": db.name_session(book_connection.APPLICATION_NAME, schema)}
    ends_s = time.monotonic() + GRACE_S
    while time.monotonic() < ends_s:
        if await (await admin.execute(QUERIES["count_busy"].text, values)).fetchone() == (0,):
            return
        await asyncio.sleep(POLL_S)


async def wait_for_people(admin: Connection, schema: str, progress: Callable[[str], None]) -> None:
    """Wait until no open transaction has written in a copy whose service sessions are gone."""
    said = ""
    while True:
        rows = await (await admin.execute(QUERIES["list_writers"].text, {"schema": schema})).fetchall()
        if not rows:
            return
        who = ", ".join(f"{name} (pid {pid})" for pid, name in rows)
        if who != said:
            progress(f"waiting for a transaction that has written in the cell: {who}")
            said = who
        await asyncio.sleep(POLL_S)


async def end_sessions(admin: Connection, schema: str) -> None:
    """End the service's sessions with a closed copy, and wait until they are gone. Raises psycopg.Error."""
    clock = await (await admin.execute(QUERIES["read_clock"].text)).fetchone()
    assert clock is not None, "a query without a condition always has its row"
    names = [
        db.name_session(name, schema) for name in (db.APPLICATION_NAME, book_connection.APPLICATION_NAME)
    ]
    values = {"at": clock[0], "names": names}
    while True:
        left = await (await admin.execute(QUERIES["end_sessions"].text, values)).fetchall()
        if not left:
            return
        await asyncio.sleep(POLL_S)
