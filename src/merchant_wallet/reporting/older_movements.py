"""Adds the movements of entries that the rollup has passed before it knew of movements.

Rules:
- A page of entries, its sums and the cursor are one commit, under the same lock as the rollup's.
- Entries in files are read from there. A file that can't be read is reported, and its book waits.
- When a book's movements have reached its figures, the rollup goes on with both.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

import psycopg
import structlog

from merchant_wallet.base.db import is_transient_error
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.workers import log_error
from merchant_wallet.book.archive.archived_journal import open_journal
from merchant_wallet.book.archive.files import ArchiveFolder, ArchiveUnreadable
from merchant_wallet.book.chart import LAST_FIXED_ID
from merchant_wallet.book.state import Entry
from merchant_wallet.reporting.paging import Connection, fetch
from merchant_wallet.reporting.rollup import BATCH_SIZE, QUERIES

BOOKS_A_ROUND: Final = 50
PAGES_A_ROUND: Final = 20
WALLETS_ID: Final = 0
"""Stands for all sub-users' wallets."""

Sum = tuple[int, int, str, str]
"""Day, account, currency and kind."""

log = structlog.get_logger(__name__)


class MovementSums:
    """What moved on each account by day and kind. It grows with days, not with entries."""

    def __init__(self) -> None:
        self.ins: Counter[Sum] = Counter()
        self.outs: Counter[Sum] = Counter()
        self.counts: Counter[Sum] = Counter()

    def add(self, entry: Entry) -> None:
        """Add one entry's postings."""
        day = entry.at_ms // DAY_MS
        for one in entry.postings:
            for account_id, sums in ((one.source_id, self.outs), (one.target_id, self.ins)):
                shown_id = account_id if account_id <= LAST_FIXED_ID else WALLETS_ID
                key = (day, shown_id, one.currency, entry.kind)
                sums[key] += one.amount_units
                self.counts[key] += 1


async def catch_up(
    conn: Connection, archive: ArchiveFolder, *, page: int = BATCH_SIZE, pages: int = PAGES_A_ROUND
) -> int:
    """Add older movements of the books that lack some, some pages of each. Returns how many pages."""
    done = 0
    for row in await fetch(conn, QUERIES["list_unlevel"].text, {"most": BOOKS_A_ROUND}):
        try:
            for _ in range(pages):
                if not await _add_page(conn, archive, row["merchant_id"], page):
                    break
                done += 1
        except ArchiveUnreadable as error:
            log.error("movements of a book not added up", merchant_id=row["merchant_id"], reason=str(error))
        except psycopg.Error as error:
            if is_transient_error(error):
                raise
            log_error(log, "movements of a book not added up", error, merchant_id=row["merchant_id"])
    return done


async def _add_page(conn: Connection, archive: ArchiveFolder, merchant_id: int, page: int) -> bool:
    """Add the next entries of one book. Returns False at the end, or while another worker does it."""
    journal = await open_journal(conn, archive, merchant_id)
    async with conn.transaction():
        await conn.execute(QUERIES["avoid_scans"].text.encode())
        where = {"merchant_ids": [merchant_id]}
        cursors = await fetch(conn, QUERIES["lock_cursors"].text, where)
        if not cursors or cursors[0]["movement_id"] >= cursors[0]["entry_id"]:
            return False
        after_id, until_id = cursors[0]["movement_id"], cursors[0]["entry_id"]
        if after_id < journal.border:
            entries = await journal.read_after(after_id)
            await _add_archived(conn, merchant_id, entries)
            # A file that has no entry there would keep the book waiting for ever.
            last_id = entries[-1].entry_id if entries else journal.border
        else:
            last_id = await _add_stored(conn, merchant_id, after_id, until_id, page)
        await conn.execute(
            QUERIES["move_movements"].text.encode(), {"merchant_id": merchant_id, "last_id": last_id}
        )
    return True


async def _add_archived(conn: Connection, merchant_id: int, entries: Sequence[Entry]) -> None:
    sums = MovementSums()
    for entry in entries:
        sums.add(entry)
    keys = sorted(sums.counts)
    columns: dict[str, list[object]] = defaultdict(list)
    for day, account_id, currency, kind in keys:
        columns["days"].append(day)
        columns["account_ids"].append(account_id)
        columns["currencies"].append(currency)
        columns["kinds"].append(kind)
    values = {
        **columns,
        "merchant_ids": [merchant_id] * len(keys),
        "ins": [sums.ins[key] for key in keys],
        "outs": [sums.outs[key] for key in keys],
        "counts": [sums.counts[key] for key in keys],
    }
    if keys:
        await conn.execute(QUERIES["add_counted"].text.encode(), values)


async def _add_stored(conn: Connection, merchant_id: int, after_id: int, until_id: int, page: int) -> int:
    where = {"merchant_id": merchant_id, "after_id": after_id, "until_id": until_id, "page": page}
    (found,) = await fetch(conn, QUERIES["find_page_end"].text, where)
    last_id: int = until_id if found["last_id"] is None else found["last_id"]
    values = {
        "merchant_ids": [merchant_id],
        "entry_ids": [after_id],
        "last_ids": [last_id],
        "last_fixed": LAST_FIXED_ID,
    }
    await conn.execute(QUERIES["add_movements"].text.encode(), values)
    return last_id
