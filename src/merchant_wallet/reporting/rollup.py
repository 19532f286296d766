"""The rollup: sums of the journals by day, kind and currency, added up after the books' commits.

Rules:
- An entry is counted once: the sums and the cursor behind them are one commit.
- No book is locked, and only committed entries are read. A book's ids and commits have the same order, so no
  entry can appear behind the cursor.
- Small books go first. A book that is far behind catches up batch by batch.
"""

import asyncio
from pathlib import Path
from typing import Final

from merchant_wallet.base.db import Queries
from merchant_wallet.book.chart import FEES_ID_OF
from merchant_wallet.reporting.paging import Connection, fetch

QUERIES: Final = Queries(Path(__file__).with_name("rollup.sql"))
BATCH_SIZE: Final = 5000
INTERVAL_S: Final = 5.0
BATCH_PAUSE_S: Final = 0.05
"""The pause between two batches of a book that is far behind, so that requests come first."""
BATCHES_A_TURN: Final = 20
"""After this many batches the other books are looked at again."""


async def advance(conn: Connection, merchant_id: int, now_ms: int, *, batch: int = BATCH_SIZE) -> int:
    """Add the next entries of a book to the figures. Returns how many; 0 if it is up to date."""
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


async def advance_all(
    conn: Connection, now_ms: int, *, batch: int = BATCH_SIZE, pause_s: float = BATCH_PAUSE_S
) -> int:
    """Add new entries of every book, up to `BATCHES_A_TURN` batches. Returns how many entries."""
    total, turns = 0, BATCHES_A_TURN
    for behind in await fetch(conn, QUERIES["list_behind"].text, {}):
        added = batch
        while added == batch and turns > 0:
            added = await advance(conn, behind["merchant_id"], now_ms, batch=batch)
            total, turns = total + added, turns - 1
            if added == batch:
                await asyncio.sleep(pause_s)
    return total
