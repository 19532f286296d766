"""Signed checkpoints of the audit log, kept outside the database beside the books'.

Rules: as in `book.checkpoints`, whose lines these are: the file is `audit.jsonl`, the merchant is 0, which no
merchant is, and an entry's number is its place. Whoever cuts the log's end off and mends its head can't sign
for that.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from merchant_wallet.audit.records import QUERIES, Connection
from merchant_wallet.audit.verify import AuditFault
from merchant_wallet.book.checkpoints import (
    INTERVAL_MS,
    Checkpoint,
    append_checkpoint,
    decode_checkpoint,
    is_signed,
    read_lines,
)

FILE: Final = "audit.jsonl"
NO_MERCHANT: Final = 0


class CheckpointReport(msgspec.Struct, frozen=True):
    """How many checkpoints hold, whether the last line is torn as by a crash, and the first that doesn't."""

    checked: int
    torn: bool
    fault: AuditFault | None


async def write_checkpoint(
    conn: Connection, key: bytes, directory: Path, now_ms: int, *, interval_ms: int = INTERVAL_MS
) -> bool:
    """Append a checkpoint if the log has grown since the last one; gives whether it did. Raises OSError."""
    row = await (await conn.execute(QUERIES["read_head"].text)).fetchone()
    if row is None or not row[0]:
        return False
    count, head_hash, _ = row
    head = Checkpoint(NO_MERCHANT, count, count, bytes(head_hash).hex(), now_ms)
    return await asyncio.to_thread(_append, key, directory, head, interval_ms)


def _append(key: bytes, directory: Path, head: Checkpoint, interval_ms: int) -> bool:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return append_checkpoint(key, directory / FILE, head, interval_ms)


async def check_checkpoints(conn: Connection, key: bytes, directory: Path) -> CheckpointReport:
    """Compare every checkpoint with the log as it is now, in the order they were written."""
    checked, offset, last_count = 0, 0, 0
    while True:
        lines, offset, torn = await asyncio.to_thread(read_lines, directory / FILE, offset)
        checkpoints = [decode_checkpoint(line) for line in lines]
        # What is not ours may hold any number, and no hash helps it.
        signed = [c.last_entry_id for c in checkpoints if c is not None and is_signed(key, c)]
        hashes = await _read_hashes(conn, signed)
        for checkpoint in checkpoints:
            fault = _judge(key, checked + 1, checkpoint, hashes, last_count)
            if fault is not None:
                return CheckpointReport(checked, torn, fault)
            checked += 1
            last_count = checkpoint.entry_count if checkpoint is not None else last_count
        if torn or not lines:
            return CheckpointReport(checked, torn, None)


async def _read_hashes(conn: Connection, audit_nos: Sequence[int]) -> Mapping[int, str]:
    cursor = await conn.execute(QUERIES["read_hashes"].text, {"audit_nos": list(audit_nos)})
    return {audit_no: bytes(entry_hash).hex() for audit_no, entry_hash in await cursor.fetchall()}


def _judge(
    key: bytes, line_no: int, checkpoint: Checkpoint | None, hashes: Mapping[int, str], last_count: int
) -> AuditFault | None:
    if checkpoint is None:
        return AuditFault(f"line {line_no} of {FILE} is no checkpoint")
    audit_no = checkpoint.last_entry_id
    if not is_signed(key, checkpoint) or checkpoint.merchant_id != NO_MERCHANT:
        text = f"line {line_no} of {FILE} is not signed with this key for this log"
    elif checkpoint.entry_count < last_count or audit_no != checkpoint.entry_count:
        text = f"line {line_no} of {FILE} counts {checkpoint.entry_count} entries up to {audit_no}"
    elif audit_no not in hashes:
        text = f"a checkpoint saw entry {audit_no}, which is gone (line {line_no} of {FILE})"
    elif hashes[audit_no] != checkpoint.head_hash:
        text = f"a checkpoint saw another hash of entry {audit_no} (line {line_no} of {FILE})"
    else:
        return None
    return AuditFault(text, audit_no)
