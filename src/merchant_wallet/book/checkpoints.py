"""Signed checkpoints: what a book's head was, kept outside the database.

Rules: a book has one file, `<merchant id>.jsonl`, one line per checkpoint, only ever appended to; a line is
whole when it ends with a line feed. A last line without one is what a crash in the middle of writing leaves:
it is no evidence of anything and the next writer removes it. Every whole line must be of the right form,
signed and true. The key comes from outside the database, so whoever can rewrite a journal can't sign for it.
"""

import asyncio
import fcntl
import hmac
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet import ids
from merchant_wallet.book.faults import Fault
from merchant_wallet.book.replay import position_of
from merchant_wallet.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("checkpoints.sql"))
INTERVAL_MS: Final = 60_000
CHECKPOINT_KEY: Final = "checkpoint"
"""What the key that signs checkpoints is derived under."""
LINES_AT_ONCE: Final = 1000
# Longer than any checkpoint, so that a file of another kind is not read into memory as one line.
MAX_LINE_BYTES: Final = 1024


class Checkpoint(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One line: after `entry_count` entries, the last being `last_entry_id`, the head was `head_hash` (hex).

    `mac` is the hex HMAC-SHA256 over all of that and the moment.
    """

    merchant_id: int
    entry_count: int
    last_entry_id: int
    head_hash: str
    at_ms: int
    mac: str = ""


class CheckpointReport(msgspec.Struct, frozen=True):
    """How many checkpoints of a book hold, whether the last line is torn, and the first that doesn't hold."""

    checked: int
    torn: bool
    fault: Fault | None


def sign_checkpoint(key: bytes, checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint with its mac."""
    return msgspec.structs.replace(checkpoint, mac=_mac(key, checkpoint))


def is_signed(key: bytes, checkpoint: Checkpoint) -> bool:
    """Whether the mac was made with this key over this content; compared in constant time."""
    return hmac.compare_digest(_mac(key, checkpoint).encode(), checkpoint.mac.encode())


def _mac(key: bytes, checkpoint: Checkpoint) -> str:
    c = checkpoint
    text = f"checkpoint;1;{c.merchant_id};{c.entry_count};{c.last_entry_id};{c.head_hash};{c.at_ms}"
    return hmac.digest(key, text.encode(), "sha256").hex()


async def write_checkpoints(
    conn: AsyncConnection, key: bytes, directory: Path, now_ms: int, *, interval_ms: int = INTERVAL_MS
) -> int:
    """Append a checkpoint for each book that moved since its last one; gives how many were written.

    A book whose last checkpoint is younger than `interval_ms` is left for later. Several processes may call
    this at once. Raises OSError when the folder can't be written.
    """
    rows = await (await conn.execute(QUERIES["read_heads"].text)).fetchall()
    heads = [
        Checkpoint(merchant_id, count, ids.compose(range_no, counter), head_hash.hex(), now_ms)
        for merchant_id, range_no, counter, count, head_hash in rows
    ]
    return await asyncio.to_thread(_append_moved, key, directory, heads, interval_ms)


def _append_moved(key: bytes, directory: Path, heads: Sequence[Checkpoint], interval_ms: int) -> int:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return sum(
        [append_checkpoint(key, _file_of(directory, head.merchant_id), head, interval_ms) for head in heads]
    )


def _file_of(directory: Path, merchant_id: int) -> Path:
    return directory / f"{merchant_id}.jsonl"


def append_checkpoint(key: bytes, path: Path, head: Checkpoint, interval_ms: int) -> bool:
    """Append one checkpoint to a file if it is due, and see it onto the disk; gives whether it was.

    Raises OSError.
    """
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = os.fstat(file).st_size
        whole_bytes, last = _read_last(key, file, size)
        if last is not None and not _is_due(last, head, interval_ms):
            return False
        if whole_bytes < size:
            os.ftruncate(file, whole_bytes)
        os.write(file, msgspec.json.encode(sign_checkpoint(key, head)) + b"\n")
        os.fsync(file)
    finally:
        os.close(file)
    if not size:
        _sync_folder(path.parent)
    return True


def _is_due(last: Checkpoint, head: Checkpoint, interval_ms: int) -> bool:
    # Another process may have seen a later head meanwhile; a clock that was set back must not stop the
    # writing.
    return head.entry_count > last.entry_count and not 0 <= head.at_ms - last.at_ms < interval_ms


def _read_last(key: bytes, file: int, size: int) -> tuple[int, Checkpoint | None]:
    """Where the last whole line ends, and its checkpoint, None when there is none that is signed."""
    start = max(0, size - 2 * MAX_LINE_BYTES)
    tail = os.pread(file, size - start, start)
    end = tail.rfind(b"\n") + 1
    if not end:
        # Nothing but a torn first line, or no file of ours: then nothing may be cut off.
        return (0 if not start else size), None
    line = tail[tail.rfind(b"\n", 0, end - 1) + 1 : end]
    checkpoint = decode_checkpoint(line)
    signed = checkpoint is not None and is_signed(key, checkpoint)
    return start + end, checkpoint if signed else None


def decode_checkpoint(line: bytes) -> Checkpoint | None:
    """The checkpoint on a line, None for a line of another form."""
    try:
        return msgspec.json.decode(line, type=Checkpoint)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _sync_folder(directory: Path) -> None:
    """A new file's name is on the disk only when its folder is."""
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


async def check_checkpoints(
    conn: AsyncConnection, key: bytes, directory: Path, merchant_id: int
) -> CheckpointReport:
    """Compare every checkpoint of a book with its journal, in the order they were written.

    The fault, rule `checkpoint`, names the entry of the first that is not signed or not true. `conn` must see
    what is committed now, not an older snapshot. A book without a file has nothing to compare.
    """
    rows = await (await conn.execute(QUERIES["read_ranges"].text, {"merchant_id": merchant_id})).fetchall()
    ranges = [row[0] for row in rows]
    checked, offset, last_count = 0, 0, 0
    path = _file_of(directory, merchant_id)
    while True:
        lines, offset, torn = await asyncio.to_thread(read_lines, path, offset)
        checkpoints = [decode_checkpoint(line) for line in lines]
        entry_ids = [c.last_entry_id for c in checkpoints if c is not None]
        where = {"merchant_id": merchant_id, "entry_ids": entry_ids}
        found = await (await conn.execute(QUERIES["read_hashes"].text, where)).fetchall()
        hashes = {entry_id: entry_hash.hex() for entry_id, entry_hash in found}
        for checkpoint in checkpoints:
            fault = _judge(key, merchant_id, checked + 1, checkpoint, hashes, ranges, last_count)
            if fault is not None:
                return CheckpointReport(checked, torn, fault)
            checked += 1
            last_count = checkpoint.entry_count if checkpoint is not None else last_count
        if torn or not lines:
            return CheckpointReport(checked, torn, None)


def read_lines(path: Path, offset: int) -> tuple[list[bytes], int, bool]:
    """Whole lines from an offset on, where the next begins, and whether a torn line follows."""
    lines: list[bytes] = []
    if not path.exists():
        return lines, offset, False
    with path.open("rb") as file:
        file.seek(offset)
        while len(lines) < LINES_AT_ONCE and (line := file.readline(MAX_LINE_BYTES)):
            if not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
                return lines, offset, True
            lines.append(line)
            offset += len(line)
    return lines, offset, False


def _judge(
    key: bytes,
    merchant_id: int,
    line_no: int,
    checkpoint: Checkpoint | None,
    hashes: Mapping[int, str],
    ranges: Sequence[int],
    last_count: int,
) -> Fault | None:
    if checkpoint is None:
        return Fault("checkpoint", f"line {line_no} is no checkpoint")
    entry_id = checkpoint.last_entry_id
    if not is_signed(key, checkpoint):
        text = f"line {line_no} is not signed with this key"
    elif checkpoint.merchant_id != merchant_id:
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
    return Fault("checkpoint", text, entry_id)


async def list_checkpointed(directory: Path) -> list[int]:
    """The merchants that have a file of checkpoints in the folder."""
    return await asyncio.to_thread(_list_files, directory)


def _list_files(directory: Path) -> list[int]:
    return sorted(int(path.stem) for path in directory.glob("*.jsonl") if path.stem.isdecimal())
