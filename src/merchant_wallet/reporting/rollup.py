"""The rollup: sums of the journals by day, added up after the books' commits.

There are two: volumes by kind and currency (`daily_figure`), and what moved on each account
(`daily_movement`), which finance's reports are made of. Both have the same cursor.

Rules:
- An entry is counted once: the sums and the cursor behind them are one commit.
- No book is locked, and only committed entries are read. A book's ids and commits have the same order, so no
  entry can appear behind the cursor.
- Each round adds entries of every book that is behind, many books per transaction.
- A book that can't be added up, since rows of it are bad, is reported in the log and delays no other.
- A round has an upper limit of entries, and the books share it fairly. So what a book lacks before a round is
  added in it, unless that is more than its share. A book that is far behind delays no other.
"""

import asyncio
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Final

import psycopg
import structlog

from merchant_wallet.base.db import Queries, is_transient_error
from merchant_wallet.base.workers import log_error
from merchant_wallet.book.chart import FEES_ID_OF, LAST_FIXED_ID
from merchant_wallet.reporting.paging import Connection, fetch

QUERIES: Final = Queries(Path(__file__).with_name("rollup.sql"))
BATCH_SIZE: Final = 5000
"""At most this many entries are added in one transaction."""
BOOKS_A_BATCH: Final = 250
"""At most this many books are added up in one transaction."""
BATCHES_A_ROUND: Final = 20
"""A round adds about this many full batches at most. Then all books are looked at again."""
INTERVAL_S: Final = 5.0
BATCH_PAUSE_S: Final = 0.05
"""The pause between two transactions of a round, so that requests come first."""

log = structlog.get_logger(__name__)

Shares = dict[int, int]
"""How many entries to add, by the merchant's id."""


async def advance_all(
    conn: Connection, now_ms: int, *, batch: int = BATCH_SIZE, pause_s: float = BATCH_PAUSE_S
) -> int:
    """Run one round over all books that are behind. Returns how many entries were added."""
    rows = await fetch(conn, QUERIES["list_behind"].text, {})
    missing = {row["merchant_id"]: row["missing"] for row in rows}
    total = 0
    for number, shares in enumerate(_split(_share_out(missing, BATCHES_A_ROUND * batch), batch)):
        if number:
            await asyncio.sleep(pause_s)
        total += await _advance_each(conn, shares, now_ms)
    return total


async def _advance_each(conn: Connection, shares: Shares, now_ms: int) -> int:
    """As `advance`. If it fails, halve the books, so that a book with bad rows fails alone."""
    try:
        return await advance(conn, shares, now_ms)
    except psycopg.Error as error:
        if is_transient_error(error):
            raise
        if len(shares) == 1:
            log_error(log, "figures of a book not added up", error, merchant_id=next(iter(shares)))
            return 0
    books = list(shares.items())
    middle = len(books) // 2
    return sum([await _advance_each(conn, dict(half), now_ms) for half in (books[:middle], books[middle:])])


async def advance(conn: Connection, shares: Shares, now_ms: int) -> int:
    """Add the next entries of these books in one transaction. Returns how many.

    A book that another worker adds up at this moment is left out.
    """
    books = {"merchant_ids": sorted(shares)}
    async with conn.transaction():
        await conn.execute(QUERIES["avoid_scans"].text.encode())
        await conn.execute(QUERIES["open_cursors"].text.encode(), books)
        cursors = await fetch(conn, QUERIES["lock_cursors"].text, books)
        after = {cursor["merchant_id"]: cursor["entry_id"] for cursor in cursors}
        values = {
            "merchant_ids": list(after),
            "entry_ids": list(after.values()),
            "shares": [shares[merchant_id] for merchant_id in after],
            "now_ms": now_ms,
        }
        moved = await fetch(conn, QUERIES["move_cursors"].text, values)
        values = {
            "merchant_ids": [row["merchant_id"] for row in moved],
            "entry_ids": [after[row["merchant_id"]] for row in moved],
            "last_ids": [row["last_id"] for row in moved],
        }
        fees_ids, last_fixed = list(FEES_ID_OF.values()), LAST_FIXED_ID
        await conn.execute(QUERIES["add_entries"].text.encode(), {**values, "fees_ids": fees_ids})
        await conn.execute(QUERIES["add_movements"].text.encode(), {**values, "last_fixed": last_fixed})
    return sum(row["entries"] for row in moved)


def _share_out(missing: Shares, limit: int) -> Shares:
    """Each book's fair share of `limit`, at least one entry. What a book does not need, the others share."""
    shares: Shares = {}
    # From the smallest up, so that each next book divides what is left among the books that are left.
    for merchant_id, count in sorted(missing.items(), key=itemgetter(1)):
        shares[merchant_id] = min(count, max(1, limit // (len(missing) - len(shares))))
        limit -= shares[merchant_id]
    return shares


def _split(shares: Shares, batch: int) -> Iterator[Shares]:
    """Divide shares into transactions. A share that exceeds one goes on in the next."""
    part: Shares = {}
    room = batch
    for merchant_id, left in shares.items():
        while left:
            part[merchant_id] = min(left, room)
            left, room = left - part[merchant_id], room - part[merchant_id]
            if not room or len(part) == BOOKS_A_BATCH:
                yield part
                part, room = {}, batch
    if part:
        yield part
