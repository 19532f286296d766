"""Signed checkpoints: the heads of books, kept outside the database. This module reads and verifies them.

Rules:
- A book has one file, `<merchant id>.jsonl`, with one checkpoint on each line. Lines are only ever appended.
- A line is whole when it ends with a line feed. A crash while writing leaves a torn last line. It proves
  nothing, and the next writer removes it.
- Every whole line must have the right form and a valid signature, and must match the journal.
- Only workers can sign (see `checkpointing`). Their key is not in the database.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.book.archive.archived_journal import open_journal
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.checkpoint_keys import CheckpointKeys, verify_signature
from merchant_wallet.book.home import read_ranges
from merchant_wallet.book.verification.replay import position_of
from merchant_wallet.book.verification.violations import Violation

QUERIES: Final = Queries(Path(__file__).with_name("checkpoints.sql"))
LINES_PER_READ: Final = 1000
# Longer than any checkpoint. So a file of another kind is not read into memory as one line.
MAX_LINE_BYTES: Final = 1024

NO_CHECKPOINT: Final = "is no checkpoint"
NOT_SIGNED: Final = "is not signed with this key"


class Checkpoint(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """One line: after `entry_count` entries, up to `last_entry_id`, the head was `head_hash` (hex).

    `signature` is the hex Ed25519 signature over all of that and the time. "" before it is signed.
    """

    merchant_id: int
    entry_count: int
    last_entry_id: int
    head_hash: str
    at_ms: int
    signature: str = ""


class CheckpointReport(msgspec.Struct, frozen=True):
    """How many checkpoints are right, whether the last line is torn, and the first wrong one."""

    checked: int
    torn: bool
    violation: Violation | None


class CheckpointLine(msgspec.Struct, frozen=True):
    """A whole line of a checkpoint file. `problem` says what is wrong with its form or signature."""

    line_no: int
    checkpoint: Checkpoint | None
    problem: str | None


def format_text_to_sign(checkpoint: Checkpoint) -> str:
    """The text that is signed. Pure."""
    c = checkpoint
    return f"checkpoint;1;{c.merchant_id};{c.entry_count};{c.last_entry_id};{c.head_hash};{c.at_ms}"


def is_signed(keys: CheckpointKeys, checkpoint: Checkpoint) -> bool:
    """Whether a line was signed with these keys."""
    if keys.public_key is None or keys.problem is not None:
        return False
    return verify_signature(keys.public_key, checkpoint.signature, format_text_to_sign(checkpoint))


def decode_checkpoint(line: bytes) -> Checkpoint | None:
    """The checkpoint on a line. None if the line has another form."""
    try:
        return msgspec.json.decode(line, type=Checkpoint)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class CheckpointFile:
    """Reads a checkpoint file from its beginning, and checks the form and signature of each line."""

    def __init__(self, path: Path, keys: CheckpointKeys) -> None:
        self.torn = False
        self._path = path
        self._keys = keys
        self._offset = 0
        self._line_no = 0

    def read(self) -> list[CheckpointLine]:
        """The next lines; none at the end. A missing file has no lines."""
        raws, self._offset, self.torn = read_lines(self._path, self._offset)
        lines = []
        for raw in raws:
            self._line_no += 1
            checkpoint = decode_checkpoint(raw)
            lines.append(CheckpointLine(self._line_no, checkpoint, _find_problem(self._keys, checkpoint)))
        return lines


async def do_nothing() -> None:
    """The way to catch up with a book that is used itself: it is never behind."""


async def check_checkpoints(
    home: AsyncConnection,
    cell: AsyncConnection,
    keys: CheckpointKeys,
    directory: Path,
    merchant_id: int,
    archive: ArchiveFolder | None = None,
    catch_up: Callable[[], Awaitable[object]] = do_nothing,
) -> CheckpointReport:
    """Compare every checkpoint of a book with its journal, in the order they were written.

    `catch_up` brings the cell to what is committed now (see `verify_book`). The violation, rule `checkpoint`,
    names the entry of the first wrong line. Both connections must see what is committed now, not an older
    snapshot. A book without a file has nothing to compare. Raises ArchiveUnreadable.
    """
    if keys.problem is not None:
        return CheckpointReport(0, False, Violation("checkpoint", keys.problem))
    ranges = await read_ranges(home, merchant_id)
    checked, last_count = 0, 0
    file = CheckpointFile(file_of(directory, merchant_id), keys)
    while lines := await asyncio.to_thread(file.read):
        sound = [line.checkpoint for line in lines if line.checkpoint is not None and line.problem is None]
        entry_ids = [checkpoint.last_entry_id for checkpoint in sound]
        hashes = await _read_hashes(cell, merchant_id, entry_ids, archive)
        if not hashes.keys() >= set(entry_ids):
            # The checkpoints may be ahead of a copy.
            await catch_up()
            hashes = await _read_hashes(cell, merchant_id, entry_ids, archive)
        for line in lines:
            violation = _judge(merchant_id, line, hashes, ranges, last_count)
            if violation is not None:
                return CheckpointReport(checked, file.torn, violation)
            checked += 1
            last_count = line.checkpoint.entry_count if line.checkpoint is not None else last_count
    return CheckpointReport(checked, file.torn, None)


async def _read_hashes(
    cell: AsyncConnection, merchant_id: int, entry_ids: Sequence[int], archive: ArchiveFolder | None
) -> dict[int, str]:
    """The current hashes of these entries, in hex. Missing entries are left out."""
    where = {"merchant_id": merchant_id, "entry_ids": entry_ids}
    found = await (await cell.execute(QUERIES["read_hashes"].text, where)).fetchall()
    hashes: dict[int, str] = {entry_id: entry_hash.hex() for entry_id, entry_hash in found}
    missing = [entry_id for entry_id in entry_ids if entry_id not in hashes]
    if missing:
        journal = await open_journal(cell, archive, merchant_id)
        archived = await journal.find_all(missing)
        hashes |= {entry_id: entry.hash.hex() for entry_id, entry in archived.items()}
    return hashes


def _judge(
    merchant_id: int, line: CheckpointLine, hashes: Mapping[int, str], ranges: Sequence[int], last_count: int
) -> Violation | None:
    checkpoint, line_no = line.checkpoint, line.line_no
    entry_id = None if checkpoint is None else checkpoint.last_entry_id
    if line.problem is not None or checkpoint is None or entry_id is None:
        return Violation("checkpoint", f"line {line_no} {line.problem}", entry_id)
    if checkpoint.merchant_id != merchant_id:
        text = f"line {line_no} is of merchant {checkpoint.merchant_id}"
    elif checkpoint.entry_count < last_count:
        text = f"line {line_no} counts fewer entries than the one before"
    elif entry_id not in hashes:
        text = f"line {line_no} saw entry {entry_id}, which is gone"
    elif hashes[entry_id] != checkpoint.head_hash:
        text = f"line {line_no} saw another hash of entry {entry_id}: {checkpoint.head_hash}"
    elif position_of(entry_id, ranges) != checkpoint.entry_count:
        text = f"line {line_no} counts {checkpoint.entry_count} entries up to {entry_id}"
    else:
        return None
    return Violation("checkpoint", text, entry_id)


def file_of(directory: Path, merchant_id: int) -> Path:
    """The file with a book's checkpoints."""
    return directory / f"{merchant_id}.jsonl"


def read_lines(path: Path, offset: int) -> tuple[list[bytes], int, bool]:
    """Whole lines from an offset on, the offset after them, and whether a torn line follows."""
    lines: list[bytes] = []
    if not path.exists():
        return lines, offset, False
    with path.open("rb") as file:
        file.seek(offset)
        while len(lines) < LINES_PER_READ and (line := file.readline(MAX_LINE_BYTES)):
            if not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
                return lines, offset, True
            lines.append(line)
            offset += len(line)
    return lines, offset, False


class Tail(msgspec.Struct, frozen=True):
    """The end of a checkpoint file: where its last whole line ends, and that line. None without one."""

    whole_bytes: int
    last: CheckpointLine | None


def read_tail(keys: CheckpointKeys, file: int, size: int) -> Tail:
    """Read the end of an open file of this size. Line numbers are not known and given as 0."""
    start = max(0, size - 2 * MAX_LINE_BYTES)
    tail = os.pread(file, size - start, start)
    end = tail.rfind(b"\n") + 1
    if not end:
        # The file has only a torn first line, or is not one of ours. Then nothing may be cut off.
        return Tail(0, None) if not start else Tail(size, CheckpointLine(0, None, NO_CHECKPOINT))
    checkpoint = decode_checkpoint(tail[tail.rfind(b"\n", 0, end - 1) + 1 : end])
    return Tail(start + end, CheckpointLine(0, checkpoint, _find_problem(keys, checkpoint)))


def _find_problem(keys: CheckpointKeys, checkpoint: Checkpoint | None) -> str | None:
    if checkpoint is None:
        return NO_CHECKPOINT
    return None if is_signed(keys, checkpoint) else NOT_SIGNED


async def list_checkpointed(directory: Path) -> list[int]:
    """The merchants that have a checkpoint file in the folder."""
    return await asyncio.to_thread(list_files, directory)


def list_files(directory: Path) -> list[int]:
    """As `list_checkpointed`, but it blocks."""
    return sorted(int(path.stem) for path in directory.glob("*.jsonl") if path.stem.isdecimal())
