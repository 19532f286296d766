"""The points where a mover of a cell is killed, and a mover that kills itself at one. Tests start it."""

import asyncio
from typing import Final

from tests.cells.moved import move_to
from tests.crash_points import OwnProcess, Point

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


def main(text: str, earlier: str, home_url: str, new_url: str) -> None:
    """What the fork server runs."""
    mover = OwnProcess(Point(text, int(earlier)).make_test())
    asyncio.run(mover.run_to_death(move_to(home_url, new_url)))
