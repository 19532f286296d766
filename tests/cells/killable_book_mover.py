"""The points where a mover of a book is killed, and a mover that kills itself at one. Tests start it."""

import asyncio
from typing import Final

from tests.cells.book_moved import move_to
from tests.crash_points import OwnProcess, Point

POINTS: Final = (
    Point("insert into merchant_move"),
    Point("update merchant set move_version"),
    Point('insert into "book"'),
    Point("set move_version = %(move_version)s"),
    Point("limit %(page)s"),
    Point("pg_inherits"),
    Point("set transaction isolation level"),
    Point('insert into "account"'),
    Point('insert into "sub_user"'),
    Point("hash_record_extended", 2),
    Point("from book where merchant_id"),
)
"""While the book is in use in its old cell."""
SWITCH_POINTS: Final = (
    Point("update merchant set move_version", 1),
    Point("set state = ", 1),
    Point("set is_open"),
    Point("distinct virtualtransaction"),
    Point("set transaction isolation level", 3),
    Point("hash_record_extended", 6),
    Point("on conflict (chain) do update"),
    Point("update merchant set move_version", 2),
    Point("update merchant b"),
    Point("insert into audit_entry", 1),
)
"""In the switch, up to home's decision."""
LATE_POINTS: Final = (
    Point("set is_open", 1),
    Point("set state = ", 3),
)
"""After the decision."""


def main(text: str, earlier: str, home_url: str, merchant_id: str, cell: str) -> None:
    """What the fork server runs."""
    mover = OwnProcess(Point(text, int(earlier)).make_test())
    asyncio.run(mover.run_to_death(move_to(home_url, int(merchant_id), cell)))
