"""What home knows of a book: its id ranges, issued addresses and payouts, and when approvals did not count.

Home writes ranges and addresses before the book uses them. So whoever compares reads the book first. It
writes payouts after the orders, and closes them after the orders have ended. So whoever compares these reads
home first.
Statements are in `home.sql`. All raise `psycopg.Error`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries

LOST: Final = "lost"
"""The obstacle of a closed payout whose order is in no book: a copy that a rollback left behind has it."""

QUERIES: Final = Queries(Path(__file__).with_name("home.sql"))


async def read_ranges(home: AsyncConnection[Any], merchant_id: int) -> tuple[int, ...]:
    """The numbers of a book's id ranges, ascending."""
    rows = await home.execute(QUERIES["read_ranges"].text, {"merchant_id": merchant_id})
    return tuple([range_no for (range_no,) in await rows.fetchall()])


class PayoutRow(NamedTuple):
    """A payout of an order, as home has it. `is_closed`: nothing is left to do. `is_lost`: see `LOST`."""

    order_id: int
    chain: str
    is_closed: bool
    frozen_ms: int | None
    is_lost: bool


async def page_payouts(
    home: AsyncConnection[Any], merchant_id: int, after: int, page: int
) -> list[PayoutRow]:
    """The payouts of a merchant's next orders after an id.

    Closed ones from before the first id range are left out: the book began anew, and its orders were lost.
    """
    values = {"merchant_id": merchant_id, "after": after, "page": page, "lost": LOST}
    rows = await (await home.execute(QUERIES["page_payouts"].text, values)).fetchall()
    return [PayoutRow(*row) for row in rows]


async def is_frozen(home: AsyncConnection[Any], merchant_id: int, order_id: int, since_ms: int) -> bool:
    """Whether an order's payout has been frozen since then."""
    values = {"merchant_id": merchant_id, "order_id": order_id}
    row = await (await home.execute(QUERIES["read_frozen"].text, values)).fetchone()
    return row is not None and row[0] == since_ms


class Wait(NamedTuple):
    """A time in which a person's approvals did not count yet: from the one moment until before the other.

    With a merchant's id only the approvals of that merchant's orders.
    """

    person: str
    from_ms: int
    eligible_ms: int
    merchant_id: int | None = None


async def list_waits(home: AsyncConnection[Any]) -> list[Wait]:
    """All waits of all people. They are few: one for each new, reset, enabled or promoted operator, and for
    each secret of a merchant that the platform's people made.
    """
    return [Wait(*row) for row in await (await home.execute(QUERIES["list_waits"].text)).fetchall()]


async def find_not_issued(
    home: AsyncConnection[Any], merchant_id: int, addresses: Sequence[bytes]
) -> bytes | None:
    """The first of these addresses that the platform has not issued to the merchant. None if it has all."""
    values = {"merchant_id": merchant_id, "addresses": list(addresses)}
    row = await (await home.execute(QUERIES["find_not_issued"].text, values)).fetchone()
    return None if row is None else bytes(row[0])


async def find_placed(home: AsyncConnection[Any], cell_id: int, merchant_ids: Sequence[int]) -> list[int]:
    """Which of these merchants have their book in the cell. Unknown merchants are the default cell's."""
    values = {"cell_id": cell_id, "merchant_ids": list(merchant_ids)}
    rows = await (await home.execute(QUERIES["find_placed"].text, values)).fetchall()
    return [merchant_id for (merchant_id,) in rows]
