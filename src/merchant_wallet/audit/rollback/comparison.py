"""Compares the last checkpoint of each file with the database: is it older than before, or different?

Rules:
- Only the last lines of files are read, and only if the file changed since the last comparison.
- The files are read first, then the database. Journals only grow, so a correct one is never behind.
- A file whose last line is not signed is evidence too. A torn last line is not (see `checkpoints`).
- Each book is compared in its cell. A cell that is away is left out.
- Nothing is written here.

Statements are in `comparison.sql`. All raise OSError for the folder, `psycopg.Error` for the database.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.audit import checkpoints as audit_checkpoints
from merchant_wallet.audit.rollback.evidence import (
    NO_MERCHANT,
    Kind,
    RollbackEvidence,
    Subject,
    format_moment,
)
from merchant_wallet.audit.rollback.reached_cells import ReachedCells
from merchant_wallet.base.counted import count_of
from merchant_wallet.base.db import Queries
from merchant_wallet.base.user_input import parse_digits
from merchant_wallet.book.checkpoint_keys import CheckpointKeys, load_keys
from merchant_wallet.book.checkpoints import Checkpoint, Tail, read_tail

QUERIES: Final = Queries(Path(__file__).with_name("comparison.sql"))
BOOKS_PER_QUERY: Final = 500
SUFFIX: Final = ".jsonl"

Connection = AsyncConnection[Any]


class LastCheckpoint(msgspec.Struct, frozen=True):
    """The last whole line of a merchant's file (0: the audit log's). `problem`: why it can't be used."""

    merchant_id: int
    checkpoint: Checkpoint | None
    problem: str | None


class Comparison:
    """Compares a folder of checkpoints with a database, again and again. Not safe for concurrent tasks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last_checkpoints = LastCheckpoints(folder)

    async def find_evidence(
        self, home: Connection, cells: ReachedCells, now_ms: int
    ) -> list[RollbackEvidence]:
        """All evidence of a rollback that there is now. The connections must see what is committed now.

        Books of cells that are away are left out; `cells` then says which.
        """
        keys = await load_keys(home, self._folder)
        if keys.problem is not None:
            return [RollbackEvidence(NO_MERCHANT, "key", "diverged", keys.problem, now_ms)]
        last_checkpoints = await asyncio.to_thread(self._last_checkpoints.read, keys)
        evidence = [
            make_evidence(last, "unreadable", last.problem, now_ms)
            for last in last_checkpoints
            if last.problem is not None
        ]
        sound = [
            last.checkpoint
            for last in last_checkpoints
            if last.checkpoint is not None and last.problem is None
        ]
        books = [checkpoint for checkpoint in sound if checkpoint.merchant_id != NO_MERCHANT]
        for start in range(0, len(books), BOOKS_PER_QUERY):
            evidence += await _compare_books(cells, books[start : start + BOOKS_PER_QUERY], now_ms)
        logs = [checkpoint for checkpoint in sound if checkpoint.merchant_id == NO_MERCHANT]
        return evidence + await _compare_log(home, logs, now_ms)


class LastCheckpoints:
    """The last checkpoints of all files of a folder. A file is read again only after it changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._keys: CheckpointKeys | None = None
        self._by_name: dict[str, tuple[tuple[int, int, int], LastCheckpoint | None]] = {}

    def read(self, keys: CheckpointKeys) -> list[LastCheckpoint]:
        """The last checkpoint of each file with a whole line. A missing folder has no files."""
        if keys != self._keys:
            self._keys, self._by_name = keys, {}
        if not self._folder.is_dir():
            return []
        by_name = {}
        with os.scandir(self._folder) as files:
            for file in files:
                merchant_id = _merchant_of(file.name)
                if merchant_id is not None:
                    by_name[file.name] = self._read_if_changed(file, merchant_id, keys)
        self._by_name = by_name
        return [last for _, last in by_name.values() if last is not None]

    def _read_if_changed(
        self, file: os.DirEntry[str], merchant_id: int, keys: CheckpointKeys
    ) -> tuple[tuple[int, int, int], LastCheckpoint | None]:
        stat = file.stat()
        state = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        before = self._by_name.get(file.name)
        if before is not None and before[0] == state:
            return before
        return state, read_last_checkpoint(Path(file.path), merchant_id, keys)


def list_last_entries(last: Iterable[LastCheckpoint]) -> list[int]:
    """The last entry of each book that its last signed checkpoint saw. Pure."""
    return [
        one.checkpoint.last_entry_id
        for one in last
        if one.checkpoint is not None and one.problem is None and one.merchant_id != NO_MERCHANT
    ]


def _merchant_of(name: str) -> int | None:
    """The merchant of a checkpoint file, 0 for the audit log's. None for any other file."""
    if name == audit_checkpoints.FILE:
        return NO_MERCHANT
    return parse_digits(name.removesuffix(SUFFIX)) if name.endswith(SUFFIX) else None


def read_last_checkpoint(path: Path, merchant_id: int, keys: CheckpointKeys) -> LastCheckpoint | None:
    """The last whole line of one file; None for a file without one."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        tail: Tail = read_tail(keys, descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)
    if tail.last is None:
        return None
    checkpoint, problem = tail.last.checkpoint, tail.last.problem
    if problem is None and checkpoint is not None and checkpoint.merchant_id != merchant_id:
        problem = f"is of merchant {checkpoint.merchant_id}"
    difference = None if problem is None else f"the last line of {path.name} {problem}"
    return LastCheckpoint(merchant_id, checkpoint, difference)


def make_evidence(last: LastCheckpoint, kind: Kind, cause: str, now_ms: int) -> RollbackEvidence:
    """The evidence that one file gives."""
    subject: Subject = "audit" if last.merchant_id == NO_MERCHANT else "book"
    return RollbackEvidence(last.merchant_id, subject, kind, cause, now_ms)


async def _compare_books(
    cells: ReachedCells, seen: Sequence[Checkpoint], now_ms: int
) -> list[RollbackEvidence]:
    cell_ids = await cells.find_cells([checkpoint.merchant_id for checkpoint in seen])
    evidence = []
    for cell_id, those in cells.group(seen, cell_ids.values()).items():
        evidence += await cells.ask(cell_id, partial(_compare_books_of, those, now_ms))
    return evidence


async def _compare_books_of(
    seen: Sequence[Checkpoint], now_ms: int, conn: Connection
) -> list[RollbackEvidence]:
    values = {
        "merchant_ids": [checkpoint.merchant_id for checkpoint in seen],
        "entry_ids": [checkpoint.last_entry_id for checkpoint in seen],
    }
    cursor = await conn.execute(QUERIES["read_books"].text, values)
    found = {merchant_id: rest for merchant_id, *rest in await cursor.fetchall()}
    return list(_compare_journals(seen, found, now_ms))


def _compare_journals(
    seen: Sequence[Checkpoint], found: dict[int, list[Any]], now_ms: int
) -> Iterator[RollbackEvidence]:
    for checkpoint in seen:
        count, entry_hash = found[checkpoint.merchant_id]
        difference = compare_journal(
            checkpoint, count, None if entry_hash is None else bytes(entry_hash).hex(), "journal"
        )
        if difference is not None:
            yield RollbackEvidence(checkpoint.merchant_id, "book", *difference, now_ms)


async def _compare_log(conn: Connection, seen: Sequence[Checkpoint], now_ms: int) -> list[RollbackEvidence]:
    evidence = []
    for checkpoint in seen:
        hashes = await audit_checkpoints.read_hashes(conn, [checkpoint.last_entry_id])
        head = await audit_checkpoints.read_head(conn, now_ms)
        count = 0 if head is None else head.entry_count
        difference = compare_journal(checkpoint, count, hashes.get(checkpoint.last_entry_id), "audit log")
        if difference is not None:
            evidence.append(RollbackEvidence(NO_MERCHANT, "audit", *difference, now_ms))
    return evidence


def compare_journal(
    seen: Checkpoint, count: int | None, entry_hash: str | None, name: str
) -> tuple[Kind, str] | None:
    """How a journal differs from its last checkpoint; None if it does not. Pure.

    The journal has `count` entries; None without a book. `entry_hash` is the current hash of the entry that
    the checkpoint saw last.
    """
    entries = count_of(seen.entry_count, "entry", "entries")
    saw = f"the checkpoint of {format_moment(seen.at_ms)} saw {entries}"
    if count is None:
        return "behind", f"{saw}, and the database has no such book"
    if count < seen.entry_count:
        return "behind", f"{saw}, the {name} has {count}"
    if entry_hash is None:
        return "diverged", f"{saw}, the last being {seen.last_entry_id}, which the {name} does not have"
    if entry_hash != seen.head_hash:
        return "diverged", f"{saw}, and another entry {seen.last_entry_id} than the {name} has"
    return None
