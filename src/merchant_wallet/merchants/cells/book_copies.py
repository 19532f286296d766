"""Copies a book from its cell to another one, while it is in use, and compares the two.

- The journal is copied by pages, in order. A mover that begins again goes on after the last copied entry.
- Nonces are copied by days: once, if the day is before that of the book's clock.
- `catch_up` does the rest, again and again. In one snapshot of the old copy it copies what has changed since
  the snapshot before, and deletes what is gone. Then it compares all rows that are not sealed, by their
  number and the sum of their hashes. It is one transaction of the new copy.
- Only a new copy that is closed, and that this mover has taken up, is ever written to.

Both copies may be in schemas of different names and on servers of different versions. Rows pass in
PostgreSQL's binary form.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection, sql

from merchant_wallet.base.db import Queries
from merchant_wallet.book.nonce_partitions import QUERIES as PARTITIONS
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions, list_nonce_days
from merchant_wallet.book.verification import pages
from merchant_wallet.merchants.cells import book_fence
from merchant_wallet.merchants.cells import book_statements as statements
from merchant_wallet.merchants.cells.book_statements import Rows
from merchant_wallet.merchants.cells.book_tables import BOOK, JOURNAL, MERCHANT, NONCE, BookTable
from merchant_wallet.merchants.cells.copies import CopyWrong
from merchant_wallet.merchants.cells.moves import MoveLost, MoveRefused

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("book_copies.sql"))
PAGE_ENTRIES: Final = 20_000
DEPOSIT: Final = "deposit"
SESSION: Final = "wallet_session"


class Digest(NamedTuple):
    """How many rows of a table have changed, how many there are, and the sum of their hashes."""

    changed: int
    total: int
    hashes: str


class Caught(NamedTuple):
    """What a pass has copied, the book's head in its snapshot, and how long it took."""

    rows: int
    entry_count: int
    head_hash: bytes
    took_s: float


class BookCopy:
    """The copy of one book in its new cell, filled from the old one."""

    def __init__(
        self,
        old: Connection,
        new: Connection,
        merchant_id: int,
        tables: Sequence[BookTable],
        move_version: int,
    ) -> None:
        self.move_version = move_version
        self._old = old
        self._new = new
        self._merchant_id = merchant_id
        self._tables = {table.name: table for table in tables}
        self._rows = Rows(merchant_id)

    async def take_up(self) -> None:
        """Be the one who writes to the new copy. Makes its first rows, closed. Raises MoveLost."""
        for table in self._tables.values():
            await self._new.execute(statements.make_stage(table.name, table.columns, _stage(table.name)))
        credited = statements.make_stage(
            "credited_transaction", statements.CREDITED, _stage("credited_transaction")
        )
        await self._new.execute(credited)
        if await book_fence.is_open(self._new, self._merchant_id) is None:
            await self._make_first_rows()
        if not await book_fence.take_up_copy(self._new, self._merchant_id, self.move_version):
            raise MoveLost("The new cell has an open copy of the book, or another mover fills it.")

    async def _make_first_rows(self) -> None:
        book = self._tables[BOOK]
        async with self._new.transaction():
            if MERCHANT in self._tables:
                await self._merge(self._tables[MERCHANT], self._rows)
            await self._stream(
                statements.read_rows(book, self._rows), statements.write(_stage(BOOK), book.columns)
            )
            await self._new.execute(statements.make_book(book, _stage(BOOK), self.move_version))

    async def copy_journal(self, progress: Callable[[int, int], None]) -> None:
        """Copy the entries with their postings, after the last one that was copied. Raises MoveLost.

        If entries went to the archive or came back from it since, they are copied anew.
        """
        after, done = await self._fetch(self._new, "count_journal")
        if done and not await self._begins_alike():
            await self._delete_journal()
            after = done = 0
        total = (await self._fetch(self._old, "read_head"))[0]
        while True:
            progress(done, max(done, total))
            values = {"after": after, "page": PAGE_ENTRIES}
            upto, count = await self._fetch(self._old, "find_page", values)
            if upto is not None:
                await self._copy_page(after, upto)
                after, done = upto, done + count
            if count < PAGE_ENTRIES:
                break
        self._rows = self._rows._replace(entry_id=after)

    async def _begins_alike(self) -> bool:
        """Whether both journals begin with the same entry: the archive has taken the same from both."""
        return await self._fetch(self._old, "read_first") == await self._fetch(self._new, "read_first")

    async def _delete_journal(self) -> None:
        async with self._new.transaction():
            await self._lock()
            for name in reversed(JOURNAL):
                await self._new.execute(statements.delete_all(name, self._merchant_id))

    async def _copy_page(self, after: int, upto: int) -> None:
        async with self._new.transaction():
            await self._lock()
            for name in JOURNAL:
                table = self._tables[name]
                await self._stream(
                    statements.read_page(table, self._merchant_id, after, upto),
                    statements.write(name, table.columns),
                )

    async def copy_nonces(self) -> None:
        """Copy the nonces of all days before that of the book's clock. Raises MoveLost."""
        today = (await self._fetch(self._old, "read_head"))[3]
        days = await list_nonce_days(self._old)
        await self._ensure_days([*days, today])
        nonce = self._tables[NONCE]
        for day in days:
            if day < today:
                await self._copy_day(nonce, day)
        self._rows = self._rows._replace(day=today)

    async def _ensure_days(self, days: Sequence[int]) -> None:
        await ensure_nonce_partitions(self._new, max(days))
        for day in set(days) - set(await list_nonce_days(self._new)):
            values = {"first_day": day, "last_day": day}
            await self._new.execute(PARTITIONS["add_nonce_days"].text, values)

    async def _copy_day(self, nonce: BookTable, day: int) -> None:
        async with self._new.transaction():
            await self._lock()
            await self._new.execute(statements.delete_nonce_day(self._merchant_id, day))
            await self._stream(
                statements.read_nonce_day(nonce, self._merchant_id, day),
                statements.write(NONCE, nonce.columns),
            )

    async def catch_up(self, *, is_last: bool = False) -> Caught:
        """Bring the new copy to a snapshot of the old one, and compare them. Raises CopyWrong, MoveLost."""
        began_s = time.monotonic()
        async with self._old.transaction():
            await self._old.execute(pages.QUERIES["begin_snapshot"].text)
            await self._old.execute(QUERIES["use_keys"].text)
            entry_count, head_hash, entry_id, day, oldest_xid = await self._fetch(self._old, "read_head")
            if day != self._rows.day:
                await self._ensure_days([day])
            there = await self._survey(self._old, self._rows)
            async with self._new.transaction():
                await self._lock()
                await self._new.execute(QUERIES["use_keys"].text)
                rows = await self._copy_changes(there)
                if not await self._begins_alike():
                    raise CopyWrong(
                        "Entries went to the archive or came back from it while the journal was copied."
                        " Run the command again: it copies the journal anew."
                    )
                await self._compare(there)
                if is_last:
                    await self._set_positions_back()
        self._rows = Rows(self._merchant_id, entry_id, day, oldest_xid)
        return Caught(rows, entry_count, head_hash, time.monotonic() - began_s)

    async def _copy_changes(self, there: Mapping[str, Digest]) -> int:
        """Copy what has changed. The first time that is every table which differs."""
        here = {} if self._rows.oldest_xid else await self._survey(self._new, self._rows)
        names = [name for name, digest in there.items() if digest.changed and digest != here.get(name)]
        for name in names:
            if name == DEPOSIT:
                await self._copy_credited()
            await self._merge(self._tables[name], self._rows)
        return sum([there[name].changed for name in names])

    async def _merge(self, table: BookTable, rows: Rows) -> None:
        stage = _stage(table.name)
        await self._stream(statements.read_rows(table, rows), statements.write(stage, table.columns))
        await self._new.execute(statements.merge(table, stage))

    async def _copy_credited(self) -> None:
        stage = _stage("credited_transaction")
        await self._stream(statements.read_credited(self._rows), statements.write(stage, statements.CREDITED))
        await self._new.execute(statements.merge_credited(stage))

    async def _compare(self, there: Mapping[str, Digest]) -> None:
        here = await self._survey(self._new, self._rows.live)
        if extra := [name for name, digest in there.items() if here[name].total > digest.total]:
            for name in reversed(extra):
                await self._delete_missing(self._tables[name])
            here = await self._survey(self._new, self._rows.live)
        if here[SESSION][1:] != there[SESSION][1:]:
            # The new cell's worker drops expired ones in all copies.
            await self._merge(self._tables[SESSION], self._rows.live)
            here = await self._survey(self._new, self._rows.live)
        for name, digest in there.items():
            if here[name][1:] != digest[1:]:
                raise CopyWrong(
                    f"The copy's table {name} differs: rows and digest are {here[name][1:]}, and"
                    f" {digest[1:]} in the old cell. Undo the move (--undo), then begin again."
                )

    async def _delete_missing(self, table: BookTable) -> None:
        stage = f"key_{table.name}"
        await self._new.execute(statements.make_stage(table.name, table.key, stage))
        await self._stream(statements.read_keys(table, self._rows), statements.write(stage, table.key))
        await self._new.execute(statements.delete_missing(table, self._rows, stage))

    async def _set_positions_back(self) -> None:
        rows = await (await self._old.execute(QUERIES["read_positions"].text)).fetchall()
        columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
        values = dict(zip(("chains", "final_numbers", "rewind_nos"), columns, strict=True))
        await self._new.execute(QUERIES["set_positions_back"].text, values)

    async def _survey(self, cell: Connection, rows: Rows) -> dict[str, Digest]:
        query = statements.survey(list(self._tables.values()), rows)
        found = {name: Digest(*digest) for name, *digest in await (await cell.execute(query)).fetchall()}
        # PostgreSQL answers in any order. Foreign keys need that of the tables.
        return {name: found[name] for name in self._tables}

    async def _lock(self) -> None:
        if not await book_fence.lock_copy(self._new, self._merchant_id, self.move_version):
            raise MoveLost("Another mover has taken the new copy up, or it is open.")

    async def _stream(self, read: sql.Composed, write: sql.Composed) -> None:
        async with self._old.cursor().copy(read) as source, self._new.cursor().copy(write) as target:
            async for block in source:
                await target.write(block)

    async def _fetch(
        self, cell: Connection, name: str, values: Mapping[str, Any] | None = None
    ) -> tuple[Any, ...]:
        named = {"merchant_id": self._merchant_id, **(values or {})}
        row: tuple[Any, ...] | None = await (await cell.execute(QUERIES[name].text, named)).fetchone()
        if row is None:
            raise MoveLost("The old cell has no book of this merchant any more.")
        return row


async def require_plain(cell: Connection) -> None:
    """Check that Citus does not place the cell's tables. Raises MoveRefused."""
    if await (await cell.execute(QUERIES["is_citus"].text)).fetchone() == (True,):
        raise MoveRefused("A cell that Citus places takes part in no move of a book.")


async def remove_copy(
    cell: Connection, merchant_id: int, tables: Sequence[BookTable], move_version: int
) -> bool:
    """Delete a closed copy of a book. False if it is open or a later mover has it; True if there is none."""
    async with cell.transaction():
        if await book_fence.is_open(cell, merchant_id) is None:
            return True
        if not await book_fence.take_up_copy(cell, merchant_id, move_version):
            return False
        await cell.execute(QUERIES["use_keys"].text)
        for table in reversed(tables):
            await cell.execute(statements.delete_all(table.name, merchant_id))
    return True


def _stage(table: str) -> str:
    return f"moved_{table}"
