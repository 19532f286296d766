"""What home knows of a book: its id ranges, its issued addresses, and when people's approvals did not count.

Home writes ranges and addresses before the book uses them. So whoever compares reads the book first.
Statements are in `home.sql`. All raise `psycopg.Error`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("home.sql"))


async def read_ranges(home: AsyncConnection[Any], merchant_id: int) -> tuple[int, ...]:
    """The numbers of a book's id ranges, ascending."""
    rows = await home.execute(QUERIES["read_ranges"].text, {"merchant_id": merchant_id})
    return tuple([range_no for (range_no,) in await rows.fetchall()])


class Wait(NamedTuple):
    """A time in which a person's approvals did not count yet: from the one moment until before the other."""

    person: str
    from_ms: int
    eligible_ms: int


async def list_waits(home: AsyncConnection[Any]) -> list[Wait]:
    """All waits of all people. They are few: one for each new, reset, enabled or promoted operator."""
    return [Wait(*row) for row in await (await home.execute(QUERIES["list_waits"].text)).fetchall()]


async def find_not_issued(
    home: AsyncConnection[Any], merchant_id: int, addresses: Sequence[bytes]
) -> bytes | None:
    """The first of these addresses that the platform has not issued to the merchant. None if it has all."""
    values = {"merchant_id": merchant_id, "addresses": list(addresses)}
    row = await (await home.execute(QUERIES["find_not_issued"].text, values)).fetchone()
    return None if row is None else bytes(row[0])
