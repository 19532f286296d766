"""Writes the closed months of a book to files, and tells the database about each.

Rules:
- A month is closed when the book has an entry of a later month, and that month begins not after `before_ms`.
  The times of a journal never go back, so nothing is added to a closed month.
- What others still need stays in the tables: the last entry, the last one with a checkpoint, the first
  unfinished order and the entry before it, and what the figures do not contain yet.
- Each entry must continue the chain and match its checkpoints, or the month is refused. The chain is followed
  to the next checkpoint after the month. So a journal that somebody rewrote with all its hashes is refused.
- The file is read again from the disk before the database gets the month. So a killed run leaves at most a
  file that nobody knows, and the next run writes it again.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.archive.checks import ArchiveWrong, check_entries
from merchant_wallet.book.archive.files import ArchiveFolder, Manifest, make_digest
from merchant_wallet.book.archive.months import (
    ArchivedMonth,
    BookAway,
    Connection,
    format_month,
    list_months,
    parse_month,
)
from merchant_wallet.book.archive.writing import MonthWriter, Sign
from merchant_wallet.book.journal import FIRST_HASH, compute_entry_hash
from merchant_wallet.book.state import Entry
from merchant_wallet.book.verification.pages import read_journal_page

QUERIES: Final = Queries(Path(__file__).with_name("closing.sql"))

LONGEST_MONTH_MS: Final = 31 * DAY_MS

Progress = Callable[[int, str, int], None]
"""Called after each page with the merchant's id, the month, and the entries written so far."""


async def list_open_books(cell: Connection) -> list[int]:
    """The open books of a cell."""
    return [row[0] for row in await (await cell.execute(QUERIES["list_open_books"].text)).fetchall()]


@dataclass(frozen=True, slots=True)
class Closed:
    """What was written of a book, and why no more. None: all that was asked for."""

    months: list[ArchivedMonth]
    reason: str | None


@dataclass(frozen=True, slots=True)
class _Limit:
    """The first entry that must stay in the tables, and why."""

    entry_id: int
    reason: str


async def close_months(
    cell: Connection,
    folder: ArchiveFolder,
    merchant_id: int,
    before_ms: int,
    checkpointed: Mapping[int, str],
    sign: Sign,
    now_ms: int,
    progress: Progress,
) -> Closed:
    """Write the closed months of a book before a moment that have no file yet.

    Raises ArchiveWrong if the journal does not match its chain or a checkpoint, ArchiveUnreadable if what was
    written can't be read, BookAway, OSError, psycopg.Error.
    """
    known = await list_months(cell, merchant_id)
    limit = await _find_limit(cell, merchant_id, checkpointed)
    after, last_hash = (known[-1].last_id, known[-1].last_hash) if known else (0, FIRST_HASH)
    made: list[ArchivedMonth] = []
    while True:
        run = _MonthRun(cell, folder, merchant_id, limit, checkpointed, progress)
        manifest = await run.write(after, last_hash, before_ms, sign, now_ms)
        if manifest is None:
            return Closed(made, run.reason)
        month = make_month(manifest)
        # A second reading, from the disk.
        await asyncio.to_thread(check_entries, folder, manifest, checkpointed)
        if not (await cell.execute(QUERIES["add_month"].text, _list_values(month))).rowcount:
            raise BookAway(merchant_id)
        made.append(month)
        after, last_hash = month.last_id, month.last_hash


async def _find_limit(cell: Connection, merchant_id: int, checkpointed: Mapping[int, str]) -> _Limit:
    where = {"merchant_id": merchant_id}
    row = await (await cell.execute(QUERIES["read_limits"].text, where)).fetchone()
    if row is None or not row[0]:
        return _Limit(0, "its book is not here, or is being moved")
    _, head_id, figures_id, open_order_id = row
    limits = [
        _Limit(head_id, "its last entry is of that month"),
        _Limit(max(checkpointed, default=0), "it has no checkpoint after that month"),
        _Limit(figures_id + 1, "the worker has not added it up yet"),
    ]
    if open_order_id is not None:
        where["entry_id"] = open_order_id
        found = await (await cell.execute(QUERIES["read_previous_id"].text, where)).fetchone()
        assert found is not None
        limits.append(_Limit(found[0], f"order {open_order_id} is not finished"))
    return min(limits, key=lambda one: one.entry_id)


class _MonthRun:
    """Writes one month. `reason` says afterwards why there was none."""

    def __init__(
        self,
        cell: Connection,
        folder: ArchiveFolder,
        merchant_id: int,
        limit: _Limit,
        checkpointed: Mapping[int, str],
        progress: Progress,
    ) -> None:
        self._cell = cell
        self._folder = folder
        self._merchant_id = merchant_id
        self._limit = limit
        self._checkpointed = checkpointed
        self._progress = progress
        self._writer: MonthWriter | None = None
        self._count = 0
        self._last_id = 0
        self._next_ms = 0
        self.reason: str | None = None

    async def write(
        self, after: int, last_hash: bytes, before_ms: int, sign: Sign, now_ms: int
    ) -> Manifest | None:
        """Write the month of the next entry after an id. None if it is not closed."""
        try:
            while page := await read_journal_page(self._cell, self._merchant_id, after):
                for entry in page:
                    if self._ends_before(entry, before_ms):
                        return await self._finish(sign, now_ms, last_hash)
                    if entry.entry_id >= self._limit.entry_id:
                        self.reason = self._limit.reason
                        return None
                    last_hash = self._add(entry, last_hash)
                after = page[-1].entry_id
                self._progress(
                    self._merchant_id, "" if self._writer is None else self._writer.month, self._count
                )
            return None
        finally:
            if self._writer is not None:
                self._writer.discard()

    def _ends_before(self, entry: Entry, before_ms: int) -> bool:
        """Whether an entry is of a later month than the one that is being written, or is not wanted."""
        # The times of a journal never go back, so this is the next one's beginning.
        return entry.at_ms >= (before_ms if self._writer is None else min(before_ms, self._next_ms))

    def _add(self, entry: Entry, last_hash: bytes) -> bytes:
        computed = self._follow(entry, last_hash)
        if self._writer is None:
            month = format_month(entry.at_ms)
            self._writer = MonthWriter(self._folder, self._merchant_id, month, last_hash)
            self._next_ms = parse_month(format_month(parse_month(month) + LONGEST_MONTH_MS))
        self._writer.add(entry)
        self._count += 1
        self._last_id = entry.entry_id
        return computed

    def _follow(self, entry: Entry, last_hash: bytes) -> bytes:
        """Check that an entry continues the chain and matches its checkpoint. Returns its hash."""
        computed = compute_entry_hash(self._merchant_id, last_hash, entry)
        if entry.hash != computed:
            self._refuse(f"entry {entry.entry_id} does not continue the chain")
        if self._checkpointed.get(entry.entry_id, computed.hex()) != computed.hex():
            self._refuse(f"a checkpoint saw another hash of entry {entry.entry_id}")
        return computed

    async def _follow_to_checkpoint(self, last_hash: bytes) -> None:
        """Follow the chain from the end of the month to the first entry that a checkpoint saw."""
        after = self._last_id
        while after not in self._checkpointed:
            page = await read_journal_page(self._cell, self._merchant_id, after)
            if not page:
                self._refuse(f"no checkpoint saw an entry after {self._last_id}")
            for entry in page:
                last_hash = self._follow(entry, last_hash)
                after = entry.entry_id
                if after in self._checkpointed:
                    break

    def _refuse(self, cause: str) -> NoReturn:
        raise ArchiveWrong(
            f"{cause}. Its month was not archived: run `merchant-wallet book verify {self._merchant_id}`"
        )

    async def _finish(self, sign: Sign, now_ms: int, last_hash: bytes) -> Manifest | None:
        if self._writer is None:
            return None
        await self._follow_to_checkpoint(last_hash)
        return await asyncio.to_thread(self._writer.finish, sign, now_ms)


def make_month(manifest: Manifest) -> ArchivedMonth:
    """What the database keeps of a month that was just written. Pure."""
    m = manifest
    ends = (m.first_id, m.last_id, m.entries, m.postings, m.first_ms, m.last_ms)
    hashes = (bytes.fromhex(m.previous_hash), bytes.fromhex(m.last_hash), make_digest(m))
    return ArchivedMonth(m.merchant_id, m.month, *ends, *hashes, m.first_id - 1, m.written_ms)


def _list_values(month: ArchivedMonth) -> dict[str, Any]:
    return {name: getattr(month, name) for name in month.__struct_fields__}
