"""A mover of a book that kills or stops itself before a given statement. Tests start it."""

import asyncio
from typing import Final

from tests.cells.book_moved import move_to
from tests.cells.killable_mover import Point, stop_before

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


def main(text: str, earlier: str, signal_no: str, home_url: str, merchant_id: str, cell: str) -> None:
    """What the fork server runs."""
    stop_before(Point(text, int(earlier)), int(signal_no))
    asyncio.run(move_to(home_url, int(merchant_id), cell))
