"""Verifies the copy of a cell at its new place, before it counts.

- While the old place is in use, each book of the copy is verified in full, with its checkpoints.
- What was committed since is checked by the chain of hashes, as often as needed.
- In the end all books must have the same head and the same version at both places.

The copy may be behind home and the files of checkpoints. So before a violation counts, the copy applies what
was committed when these were read.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.checkpoint_keys import CheckpointKeys
from merchant_wallet.book.verification import pages, verify
from merchant_wallet.book.verification.tail import NO_ENTRIES, Head, check_tail
from merchant_wallet.book.verification.violations import ViolationFound
from merchant_wallet.merchants.cells.moves import MoveRefused

Connection = AsyncConnection[Any]

QUERIES: Final = Queries(Path(__file__).with_name("copies.sql"))


class CopyWrong(MoveRefused):
    """The copy is not what the old place has, or a book in it is wrong."""


class CheckpointFolder(NamedTuple):
    """The folder with the signed checkpoints, the keys to check them with, and the folder of the archive."""

    path: Path
    keys: CheckpointKeys
    archive: ArchiveFolder | None = None


class CopyVerifier:
    """Verifies the books of one copy, and remembers how far."""

    def __init__(self, home: Connection, new: Connection, checkpoints: CheckpointFolder | None) -> None:
        self._home = home
        self._new = new
        self._checkpoints = checkpoints
        self._verified: dict[int, Head] = {}

    async def verify_all(
        self, wait_applied: Callable[[], Awaitable[None]], progress: Callable[[int, int], None]
    ) -> None:
        """Verify every book that was not verified yet. Raises CopyWrong."""
        rows = await (await self._new.execute(QUERIES["list_heads"].text)).fetchall()
        # Home knows nothing of the old copy of a book. Its chain of hashes is checked with the tails.
        waiting = [
            merchant_id
            for merchant_id, _, _, is_open in rows
            if is_open and merchant_id not in self._verified
        ]
        for done, merchant_id in enumerate(waiting):
            progress(done, len(waiting))
            await self._verify(merchant_id, wait_applied)

    async def _verify(self, merchant_id: int, wait_applied: Callable[[], Awaitable[None]]) -> None:
        folder, keys, archive = self._checkpoints or (None, None, None)
        report = await verify.verify_book(
            self._home,
            self._new,
            merchant_id,
            checkpoint_dir=folder,
            checkpoint_keys=keys,
            archive=archive,
            catch_up=wait_applied,
        )
        if report.violation is not None:
            raise CopyWrong(
                f"Book {merchant_id} is wrong at the new place ({report.violation.rule}):"
                f" {report.violation.text}."
                f" See whether `merchant-wallet book verify {merchant_id}` finds it at the old place, too."
            )
        self._verified[merchant_id] = Head(report.entries, report.last_entry_id or 0, report.head_hash)

    async def check_tails(self) -> int:
        """Check what was committed since. Returns the number of new entries. Raises CopyWrong."""
        count = 0
        async with self._new.transaction():
            await self._new.execute(pages.QUERIES["begin_snapshot"].text)
            rows = await (await self._new.execute(QUERIES["list_heads"].text)).fetchall()
            for merchant_id, entry_count, head_hash, _ in rows:
                before = self._verified.get(merchant_id, NO_ENTRIES)
                if before.head_hash == head_hash:
                    continue
                try:
                    after = await check_tail(self._new, merchant_id, before, entry_count, head_hash)
                except ViolationFound as found:
                    text = f"Book {merchant_id} is wrong at the new place: {found.violation.text}."
                    raise CopyWrong(text) from found
                count += after.entry_count - before.entry_count
                self._verified[merchant_id] = after
        return count


async def compare(old: Connection, new: Connection) -> None:
    """Compare the heads of all books. Nobody writes at the old place now. Raises CopyWrong."""
    digests = await asyncio.gather(*[_read_digest(connection) for connection in (old, new)])
    if digests[0] != digests[1]:
        raise CopyWrong(f"The places differ: books, entries and digest are {digests[0]} and {digests[1]}.")


async def _read_digest(connection: Connection) -> tuple[Any, ...] | None:
    return await (await connection.execute(QUERIES["read_digest"].text)).fetchone()
