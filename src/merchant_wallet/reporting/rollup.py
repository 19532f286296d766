"""The rollup: what the journals add up to by day, kind and currency, kept up behind the books.

Rules: an entry is in the figures once, because the sums and the cursor beyond them are one commit. No book's
lock is taken and only committed entries are read; a book's ids and commits come in one order, so nothing can
appear behind the cursor. Small books go first; one that is far behind catches up a batch at a time.
"""

import asyncio
from pathlib import Path
from typing import Final

from merchant_wallet.base.db import Queries
from merchant_wallet.book.chart import FEES_ID_OF
from merchant_wallet.reporting.paging import Connection, fetch

QUERIES: Final = Queries(Path(__file__).with_name("rollup.sql"))
BATCH: Final = 5000
INTERVAL_S: Final = 5.0
REST_S: Final = 0.05
"""Between two batches of a book that is far behind, so that requests come first."""
BATCHES_A_TURN: Final = 20
"""Then the other books are looked at again."""


async def advance(conn: Connection, merchant_id: int, now_ms: int, *, batch: int = BATCH) -> int:
    """Add the next entries of a book to the figures; how many they were, 0 when it is up to date."""
    where = {"merchant_id": merchant_id}
    async with conn.transaction():
        await conn.execute(QUERIES["open_cursor"].text.encode(), where)
        (cursor,) = await fetch(conn, QUERIES["lock_cursor"].text, where)
        values = {
            **where,
            "entry_id": cursor["entry_id"],
            "batch": batch,
            "fees_ids": list(FEES_ID_OF.values()),
            "now_ms": now_ms,
        }
        added = await fetch(conn, QUERIES["add_batch"].text, values)
    return int(added[0]["entries"]) if added else 0


async def advance_all(conn: Connection, now_ms: int, *, batch: int = BATCH, rest_s: float = REST_S) -> int:
    """Add what every book has had since the last time, up to `BATCHES_A_TURN` batches; how many entries."""
    total, turns = 0, BATCHES_A_TURN
    for behind in await fetch(conn, QUERIES["list_behind"].text, {}):
        added = batch
        while added == batch and turns > 0:
            added = await advance(conn, behind["merchant_id"], now_ms, batch=batch)
            total, turns = total + added, turns - 1
            if added == batch:
                await asyncio.sleep(rest_s)
    return total
