"""Makes frozen orders of a cell what home says, where a kill came between the two commits.

Rules:
- Home says which orders are frozen. The cell's mark may be ahead of a freeze, or behind a thaw, for seconds.
- A mark that home does not confirm for a minute is removed. A freeze that the cell lacks for a minute is
  marked.
- Nothing is done while there is evidence of a rollback: an acceptance marks orders before home freezes them.
- The cell is read before home, and a mark is removed only if it has not been renewed since. So a freeze that
  begins meanwhile stays.

Statements are in `freezes.sql`.
"""

from pathlib import Path
from typing import Final

import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.book import frozen_orders
from merchant_wallet.withdrawals.payouts import OrderKey

QUERIES: Final = Queries(Path(__file__).with_name("freezes.sql"))
GRACE_MS: Final = 60_000
"""A freeze or a thaw may take this long from its one commit to the other."""

log = structlog.get_logger(__name__)


async def follow_home(home: AsyncConnection, cell: AsyncConnection, cell_id: int, now_ms: int) -> None:
    """Make a cell's frozen orders what home says. Raises `psycopg.Error`."""
    before_ms = now_ms - GRACE_MS
    marked = await frozen_orders.list_frozen(cell)
    frozen = await _read_frozen(home, cell_id)
    if frozen is None:
        return
    for (merchant_id, order_id), since_ms in marked.items():
        if since_ms <= before_ms and (merchant_id, order_id) not in frozen:
            await frozen_orders.thaw(cell, merchant_id, order_id, since_ms)
            log.info("order was thawed in its cell too", merchant_id=merchant_id, order_id=order_id)
    late = [key for key, since_ms in frozen.items() if since_ms <= before_ms]
    for merchant_id, order_id in await frozen_orders.list_unmarked(cell, late):
        await frozen_orders.freeze(cell, merchant_id, [order_id], frozen[merchant_id, order_id])
        log.info("order was frozen in its cell too", merchant_id=merchant_id, order_id=order_id)


async def _read_frozen(home: AsyncConnection, cell_id: int) -> dict[OrderKey, int] | None:
    """The cell's orders that home has frozen, and since when; None while there is evidence of a rollback."""
    rows = await (await home.execute(QUERIES["list_frozen"].text, {"cell_id": cell_id})).fetchall()
    if any(merchant_id is None for merchant_id, _, _ in rows):
        return None
    return {(merchant_id, order_id): frozen_ms for merchant_id, order_id, frozen_ms in rows}
