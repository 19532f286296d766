"""Statements: the postings of an account or of a whole book.

A statement is an iterator. It reads page by page and holds no transaction open. This is safe, since the
journal is only appended to. It ends at the last entry that existed when it began. Amounts are units.

Archived entries are read from their files, which takes longer. Rows may be archived while a statement is
read: it then goes on in the file.
"""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.book.archive.archived_journal import open_journal
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.chart import name_account
from merchant_wallet.book.state import Entry
from merchant_wallet.reporting.books import find_account

QUERIES: Final = Queries(Path(__file__).with_name("statements.sql"))
PAGE_ROWS: Final = 1000
LAST_POSTING: Final = 2**15 - 1
"""The largest number that a posting can have: all of an entry were read."""


class StatementRow(msgspec.Struct, frozen=True, rename="camel"):
    """One side of a posting, as `account` sees it. `amount_units` is negative when the account paid.

    `balance_units` is the account's balance after the posting.
    """

    entry_id: int
    at_ms: int
    kind: str
    mc_order_id: str | None
    account: str
    counter_account: str
    currency: str
    amount_units: int
    balance_units: int


async def _fetch(conn: AsyncConnection, name: str, **values: object) -> list[tuple[Any, ...]]:
    cursor = conn.cursor(binary=True)
    return await (await cursor.execute(QUERIES[name].text, values)).fetchall()


async def read_statement(
    conn: AsyncConnection,
    merchant_id: int,
    account_name: str | None = None,
    from_ms: int | None = None,
    to_ms: int | None = None,
    archive: ArchiveFolder | None = None,
) -> AsyncIterator[StatementRow]:
    """Every posting of an account, oldest first, from `from_ms` on and before `to_ms`.

    Without an account, the whole book: each posting comes twice, once for its source and once for its target.
    Raises like `find_account` with the first row, and ArchiveUnreadable.
    """
    account_id = None
    if account_name is not None:
        account_id = (await find_account(conn, merchant_id, account_name)).account_id
    reader = _Reader(conn, merchant_id, account_id, from_ms, to_ms, archive)
    await reader.open()
    while (rows := await reader.read()) is not None:
        for row in rows:
            for shown in _show_posting(row, account_id):
                yield shown


class _Reader:
    """Reads the postings of a statement page by page, first from files and then from the tables."""

    def __init__(
        self,
        conn: AsyncConnection,
        merchant_id: int,
        account_id: int | None,
        from_ms: int | None,
        to_ms: int | None,
        archive: ArchiveFolder | None,
    ) -> None:
        self._conn = conn
        self._merchant_id = merchant_id
        self._account_id = account_id
        self._from_ms = from_ms
        self._to_ms = to_ms
        self._archive = archive
        self._at = (-1, 0)
        """The entry and the number of the last posting that was read."""
        self._bounds: dict[str, Any] = {"merchant_id": merchant_id, "account_id": account_id}
        self._is_done = False

    async def open(self) -> None:
        """Find where the statement ends."""
        self._journal = await open_journal(self._conn, self._archive, self._merchant_id)
        last = await _fetch(self._conn, "last_entry", merchant_id=self._merchant_id)
        end_id = last[0][0] + 1 if last else 0
        from_ms, to_ms = self._from_ms, self._to_ms
        find = partial(find_moment, self._conn, self._merchant_id)
        self._bounds["from_id"] = 0 if from_ms is None else await find(from_ms, end_id)
        self._bounds["until_id"] = end_id if to_ms is None else await find(to_ms, end_id)

    async def read(self) -> list[tuple[Any, ...]] | None:
        """The next postings; None at the end."""
        if self._is_done:
            return None
        if self._at < (self._journal.border, LAST_POSTING):
            return await self._read_file()
        return await self._read_tables()

    async def _read_file(self) -> list[tuple[Any, ...]]:
        entry_id, posting_no = self._at
        # The last entry may have been read in part before it was archived.
        after = entry_id if posting_no == LAST_POSTING else entry_id - 1
        entries = await self._journal.read_after(after, self._from_ms or 0)
        rows: list[tuple[Any, ...]] = []
        for entry in entries:
            if self._to_ms is not None and entry.at_ms >= self._to_ms:
                self._is_done = True
                return rows
            if entry.at_ms >= (self._from_ms or 0):
                rows += [row for row in _list_rows(entry, self._account_id) if (row[0], row[4]) > self._at]
        self._at = (entries[-1].entry_id if entries else self._journal.border, LAST_POSTING)
        return rows

    async def _read_tables(self) -> list[tuple[Any, ...]]:
        query = "page_postings" if self._account_id is None else "page_account_postings"
        where = {**self._bounds, "entry_id": self._at[0], "posting_no": self._at[1], "page": PAGE_ROWS}
        rows = await _fetch(self._conn, query, **where)
        journal = await open_journal(self._conn, self._archive, self._merchant_id)
        if journal.border > self._journal.border:
            # Rows were archived meanwhile, perhaps some of these. What was read before is not read again.
            self._journal = journal
            return []
        if rows:
            self._at = (rows[-1][0], rows[-1][4])
            self._bounds["from_id"] = rows[-1][0]
        self._is_done = len(rows) < PAGE_ROWS
        return rows


def _list_rows(entry: Entry, account_id: int | None) -> list[tuple[Any, ...]]:
    """The rows of an archived entry, as the tables would give them."""
    return [
        (entry.entry_id, entry.at_ms, entry.kind, entry.mc_order_id, number, *msgspec.structs.astuple(one))
        for number, one in enumerate(entry.postings, 1)
        if account_id in (None, one.source_id, one.target_id)
    ]


async def find_moment(conn: AsyncConnection, merchant_id: int, at_ms: int, end_id: int) -> int:
    """The first id whose entry is not before a time; `end_id` if there is none. A binary search."""
    low, high = 0, end_id
    while low < high:
        middle = (low + high) // 2
        found = await _fetch(conn, "first_entry_from", merchant_id=merchant_id, from_id=middle)
        if found and found[0][1] < at_ms:
            low = found[0][0] + 1
        else:
            high = middle
    return low


def _show_posting(row: tuple[Any, ...], account_id: int | None) -> list[StatementRow]:
    """The sides of a posting that a statement shows: the account's own, or both."""
    (
        entry_id,
        at_ms,
        kind,
        mc_order_id,
        _,
        source_id,
        target_id,
        currency,
        amount,
        source_left,
        target_left,
    ) = row
    source, target = name_account(source_id, currency), name_account(target_id, currency)
    shown = []
    if account_id in (None, source_id):
        moved = (currency, -amount, source_left)
        shown.append(StatementRow(entry_id, at_ms, kind, mc_order_id, source, target, *moved))
    if account_id in (None, target_id):
        moved = (currency, amount, target_left)
        shown.append(StatementRow(entry_id, at_ms, kind, mc_order_id, target, source, *moved))
    return shown
