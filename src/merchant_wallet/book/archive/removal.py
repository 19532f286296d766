"""Removes rows that are in a file from the tables, and restores them.

Rules:
- Months are removed from the oldest on, and restored from the newest on. Within a month it goes on entry by
  entry in the same order. So the border is one number.
- Each step is one short transaction: the names of its entries, its rows and the border change together.
- A step takes no lock that a group of the book needs: nobody changes these rows.
- The file is checked before its first row is removed. The caller does that (see `checks`).
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from merchant_wallet.base.db import Queries
from merchant_wallet.book.archive.archived_journal import read_known_manifest
from merchant_wallet.book.archive.checks import ArchiveWrong
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.archive.months import ArchivedMonth, BookAway, Connection
from merchant_wallet.book.state import Entry

QUERIES: Final = Queries(Path(__file__).with_name("removal.sql"))
ROWS_AT_ONCE: Final = 1000
"""Entries of one transaction: less than 0.1 s if nothing else is done, some seconds on a busy disk."""

Progress = Callable[[int, str, int], None]
"""Called after each step with the merchant's id, the month, and the entries removed or restored so far."""


async def remove_rows(cell: Connection, month: ArchivedMonth, progress: Progress) -> int:
    """Remove the rows of a month from the tables. Returns how many entries. Raises BookAway, ArchiveWrong."""
    count = 0
    while (removed := await _remove_some(cell, month)) is not None:
        count += removed
        progress(month.merchant_id, month.month, count)
    return count


async def _remove_some(cell: Connection, month: ArchivedMonth) -> int | None:
    """Remove the next rows. None after the last ones."""
    async with cell.transaction():
        where = await _lock(cell, month)
        where |= {"last_id": month.last_id, "rows": ROWS_AT_ONCE}
        if where["removed_id"] >= month.last_id:
            return None
        found = await (await cell.execute(QUERIES["find_last_removed"].text, where)).fetchone()
        if found is None or found[0] is None:
            raise ArchiveWrong(
                f"entries after {where['removed_id']} of {month.month} are gone from the tables"
            )
        where["upto"] = found[0]
        for name in ("keep_names", "remove_postings"):
            await cell.execute(QUERIES[name].text, where)
        removed = await cell.execute(QUERIES["remove_entries"].text, where)
        await cell.execute(QUERIES["move_border"].text, where)
        return removed.rowcount


async def _lock(cell: Connection, month: ArchivedMonth) -> dict[str, Any]:
    where: dict[str, Any] = {"merchant_id": month.merchant_id, "month": month.month}
    row = await (await cell.execute(QUERIES["lock_month"].text, where)).fetchone()
    if row is None:
        raise BookAway(month.merchant_id)
    return {**where, "removed_id": row[0]}


async def restore_rows(
    cell: Connection, folder: ArchiveFolder, month: ArchivedMonth, progress: Progress
) -> int:
    """Put the rows of a month back. The months after it were restored before. Returns how many entries.

    Raises BookAway, ArchiveUnreadable.
    """
    manifest = read_known_manifest(folder, month)
    count = 0
    for place in reversed(range(len(manifest.blocks))):
        before = manifest.blocks[place - 1].last_id if place else month.first_id - 1
        async with cell.transaction():
            where = await _lock(cell, month)
            if where["removed_id"] <= before:
                continue
            entries = [
                one
                for one in folder.read_block(manifest, manifest.blocks[place])
                if one.entry_id <= where["removed_id"]
            ]
            await _insert(cell, month.merchant_id, entries)
            await cell.execute(QUERIES["move_border"].text, {**where, "upto": before})
        count += len(entries)
        progress(month.merchant_id, month.month, count)
    return count


async def _insert(cell: Connection, merchant_id: int, entries: Sequence[Entry]) -> None:
    named = [one for one in entries if one.mc_order_id is not None]
    names = {"names": [one.mc_order_id for one in named], "kinds": [one.kind for one in named]}
    await cell.execute(QUERIES["drop_names"].text, {"merchant_id": merchant_id, **names})
    values = {
        "merchant_id": merchant_id,
        "entry_ids": [one.entry_id for one in entries],
        "kinds": [one.kind for one in entries],
        "names": [one.mc_order_id for one in entries],
        "moments": [one.at_ms for one in entries],
        "rates": [one.rate_e8 for one in entries],
        "facts": [one.facts for one in entries],
        "hashes": [one.hash for one in entries],
    }
    await cell.execute(QUERIES["restore_entries"].text, values)
    moved = [(one.entry_id, number, p) for one in entries for number, p in enumerate(one.postings, 1)]
    postings = {
        "merchant_id": merchant_id,
        "entry_ids": [entry_id for entry_id, _, _ in moved],
        "numbers": [number for _, number, _ in moved],
        "sources": [p.source_id for _, _, p in moved],
        "targets": [p.target_id for _, _, p in moved],
        "currencies": [p.currency for _, _, p in moved],
        "amounts": [p.amount_units for _, _, p in moved],
        "source_balances": [p.source_balance for _, _, p in moved],
        "target_balances": [p.target_balance for _, _, p in moved],
    }
    await cell.execute(QUERIES["restore_postings"].text, postings)
