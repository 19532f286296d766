"""A mover that kills or stops itself before a given statement. Tests start it."""

import asyncio
import os
from typing import Any, Final, NamedTuple

from tests.cells.moved import move_to

from merchant_wallet.base import db


class Point(NamedTuple):
    """A statement, by a part of its text, and how often it was begun before."""

    text: str
    earlier: int = 0

    def __str__(self) -> str:
        return f"{self.text} ({self.earlier})"


POINTS: Final = (
    Point("insert into cell_move"),
    Point("create schema"),
    Point("insert into cell_state"),
    Point("create publication"),
    Point("pg_create_logical_replication_slot"),
    Point("create subscription"),
    Point("srsubstate = 'r'"),
    Point("select merchant_id, entry_count, head_hash"),
)
"""While the cell is in use at its old place."""
SWITCH_POINTS: Final = (
    Point("update cell set version"),
    Point("set state = ", 0),
    Point("update cell_state", 0),
    Point("select clock_timestamp()"),
    Point("pg_terminate_backend(pid)"),
    Point("pg_current_wal_flush_lsn()::text", 1),
    Point("md5("),
    Point(" disable"),
    Point("update cell_state", 1),
    Point("update cell c set address"),
    Point("insert into audit_entry", 1),
)
"""In the switch, up to home's decision."""
LATE_POINTS: Final = (
    Point("drop subscription"),
    Point("drop publication"),
    Point("revoke insert"),
    Point("comment on schema", 1),
)
"""After the decision."""


def _read_text(query: Any, connection: Any) -> str:
    if isinstance(query, bytes):
        return query.decode()
    return query if isinstance(query, str) else str(query.as_string(connection))


def stop_before(point: Point, signal_no: int) -> None:
    """Have this process send itself a signal before a statement."""
    execute = db.Cursor.execute
    count = 0

    async def killable(self: db.Cursor, query: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal count
        text = _read_text(query, self.connection)
        if point.text in text:
            count += 1
            if count == point.earlier + 1:
                os.kill(os.getpid(), signal_no)
        return await execute(self, query, *arguments, **options)

    db.Cursor.execute = killable  # type: ignore[method-assign]  # in the killed process alone


def main(text: str, earlier: str, signal_no: str, home_url: str, new_url: str) -> None:
    """What the fork server runs."""
    stop_before(Point(text, int(earlier)), int(signal_no))
    asyncio.run(move_to(home_url, new_url))
