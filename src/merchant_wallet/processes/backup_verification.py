"""Verifies a restored copy of the database, and says what it lacks of the checkpoints and of the live one.

Rules:
- Every book of the copy is replayed, and compared with its signed checkpoints.
- A back-up is always a little behind. A book that only lacks its newest entries is sound, and the loss is
  counted. A book that has other entries than its checkpoints saw is wrong.
- Apart cells on other servers are not in this back-up. They are named.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

from merchant_wallet.audit.rollback.comparison import LastCheckpoints
from merchant_wallet.audit.rollback.evidence import NO_MERCHANT
from merchant_wallet.base import db
from merchant_wallet.base.cells import Cell
from merchant_wallet.base.db import Queries
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.checkpoint_keys import load_keys
from merchant_wallet.book.verification.verify import BookReport, Progress, verify_all
from merchant_wallet.postgres.migrate import list_pending, migrate
from merchant_wallet.processes.base import Base

QUERIES: Final = Queries(Path(__file__).with_name("backup_verification.sql"))
CHECKPOINT_RULE: Final = "checkpoint"
BOOK_RULE: Final = "book"


class Head(msgspec.Struct, frozen=True):
    """How many entries a book has, and the time of the newest."""

    entries: int
    last_ms: int


class Loss(msgspec.Struct, frozen=True):
    """What a copy lacks of something newer: how many entries, of how many books, and of how long a time."""

    entries: int
    books: int
    time_ms: int


class BackupReport(msgspec.Struct, frozen=True):
    """The result. `live` is None if there is no live database to compare with."""

    books: Sequence[BookReport]
    wrong: Sequence[BookReport]
    checkpoints: Loss
    live: Loss | None
    cells_left_out: Sequence[str]

    @property
    def ok(self) -> bool:
        """Whether no book is wrong. Lost entries are no fault."""
        return not self.wrong


async def read_live(url: str) -> Mapping[int, Head]:
    """The heads of the books of a database, by merchant."""
    async with await db.connect(url) as connection:
        return await _read_heads(connection)


async def verify_copy(
    base: Base, live: Mapping[int, Head] | None, since_ms: int, progress: Progress
) -> BackupReport:
    """Verify the copy that `base` names; its checkpoints and keys are the live service's.

    `live` has the heads of the live database. The copy has everything up to `since_ms` at least.
    """
    if list_pending(base.url):
        migrate(base.url, lambda _: None)
    async with await db.connect(base.url) as home:
        near, far = await _sort_cells(base)
        keys = await load_keys(home, base.checkpoint_dir)
        seen = {
            last.merchant_id: Head(last.checkpoint.entry_count, last.checkpoint.at_ms)
            for last in LastCheckpoints(base.checkpoint_dir).read(keys)
            if last.checkpoint is not None and last.problem is None
        }
        reports: list[BookReport] = []
        heads: dict[int, Head] = {}
        for cell in near:
            async with await db.connect(cell.url) as connection:
                heads |= await _read_heads(connection)
                reports += await verify_all(
                    home,
                    connection,
                    progress,
                    cell_id=cell.cell_id,
                    checkpoint_dir=base.checkpoint_dir,
                    checkpoint_keys=keys,
                    archive=ArchiveFolder(base.settings.archive_folder),
                )
    mine = {merchant_id: head for merchant_id, head in seen.items() if merchant_id in heads or not far}
    return BackupReport(
        books=reports,
        wrong=[report for report in reports if not _is_sound(report, mine, heads)],
        checkpoints=_count_loss(heads, mine, since_ms),
        live=None if live is None else _count_loss(heads, live, since_ms),
        cells_left_out=[cell.name for cell in far],
    )


async def _sort_cells(base: Base) -> tuple[list[Cell], list[Cell]]:
    """The cells of this very database, and those of others."""
    await base.cells.refresh()
    here = conninfo_to_dict(base.url)
    near: list[Cell] = []
    far: list[Cell] = []
    for cell in base.cells.list():
        there = conninfo_to_dict(cell.url)
        same = all(there.get(part) == here.get(part) for part in ("host", "port", "dbname"))
        (near if same else far).append(cell)
    return near, far


async def _read_heads(connection: AsyncConnection[Any]) -> dict[int, Head]:
    cursor = await connection.execute(QUERIES["read_heads"].text)
    return {merchant_id: Head(*head) for merchant_id, *head in await cursor.fetchall()}


def _is_sound(report: BookReport, seen: Mapping[int, Head], heads: Mapping[int, Head]) -> bool:
    violation = report.violation
    if violation is None:
        return True
    checkpoint, head = seen.get(report.merchant_id), heads.get(report.merchant_id)
    if checkpoint is None or checkpoint.entries <= (0 if head is None else head.entries):
        return False
    if head is None and report.entries == 0 and violation.rule == BOOK_RULE:
        # The merchant is newer than the copy.
        return True
    # The replay comes first, so what it found would be named instead. An entry after the last one is lost.
    is_later = violation.entry_id is not None and violation.entry_id > (report.last_entry_id or 0)
    return violation.rule == CHECKPOINT_RULE and is_later


def _count_loss(heads: Mapping[int, Head], newer: Mapping[int, Head], since_ms: int) -> Loss:
    """What a copy lacks, and how long before the newest it ends."""
    lost = [
        head.entries - heads[merchant_id].entries if merchant_id in heads else head.entries
        for merchant_id, head in newer.items()
        if merchant_id != NO_MERCHANT
    ]
    missing = [count for count in lost if count > 0]
    if not missing:
        return Loss(0, 0, 0)
    newest_ms = max(head.last_ms for head in newer.values())
    mine_ms = max((head.last_ms for head in heads.values()), default=since_ms)
    return Loss(sum(missing), len(missing), max(0, newest_ms - mine_ms))
