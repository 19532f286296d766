"""Orders that are frozen: the book takes no step with them until a person has looked.

Home's payout says that an order is frozen, and why. The order in its cell says it too, for the book's rules.
Rules:
- To freeze, the cell commits before home. To thaw, home commits before the cell. So the book never takes a
  step with an order that home shows as frozen.
- The cell's mark changes with the book's version, in one transaction. So no group that was judged before can
  commit after.
- After a kill between the two commits a worker makes the cell follow home (see `withdrawals.freezes`).

Statements are in `frozen_orders.sql`. All raise `psycopg.Error`; what changes a book raises CellClosed too.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.book.closed_books import refuse_closed

QUERIES: Final = Queries(Path(__file__).with_name("frozen_orders.sql"))

Connection = AsyncConnection[Any]


async def freeze(cell: Connection, merchant_id: int, order_ids: Iterable[int], now_ms: int) -> None:
    """Freeze a book's open orders in its cell. One that is frozen gets the new time."""
    orders = [{"merchant_id": merchant_id, "order_id": order_id, "now_ms": now_ms} for order_id in order_ids]
    async with cell.transaction(), cell.cursor() as cursor:
        await _outdate(cell, merchant_id)
        await cursor.executemany(QUERIES["freeze"].text, orders)


async def thaw(cell: Connection, merchant_id: int, order_id: int, since_ms: int | None = None) -> None:
    """Thaw an order in its cell, after home has; with `since_ms` only if it was frozen then."""
    order = {"merchant_id": merchant_id, "order_id": order_id, "since_ms": since_ms}
    async with cell.transaction():
        await _outdate(cell, merchant_id)
        await cell.execute(QUERIES["thaw"].text, order)


async def list_frozen(cell: Connection) -> dict[tuple[int, int], int]:
    """The cell's open orders that are frozen: merchants and orders, each with the time."""
    rows = await (await cell.execute(QUERIES["list_frozen"].text)).fetchall()
    return {(merchant_id, order_id): frozen_ms for merchant_id, order_id, frozen_ms in rows}


async def list_unmarked(cell: Connection, keys: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Which of these open orders, by merchant and order, are not frozen in the cell."""
    values = {"merchant_ids": [key[0] for key in keys], "order_ids": [key[1] for key in keys]}
    rows = await (await cell.execute(QUERIES["list_unmarked"].text, values)).fetchall()
    return [(merchant_id, order_id) for merchant_id, order_id in rows]


async def _outdate(cell: Connection, merchant_id: int) -> None:
    """Lock the book until the transaction's end, and outdate what was judged on it."""
    values = {"merchant_id": merchant_id, "version": uuid4()}
    if await (await cell.execute(QUERIES["outdate_book"].text, values)).fetchone() is None:
        await refuse_closed(cell, merchant_id)
