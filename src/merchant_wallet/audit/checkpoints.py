"""Signed checkpoints of the audit log, kept outside the database beside those of the books.

The rules and lines are those of `book.checkpoints`. The file is `audit.jsonl`, the merchant is 0 (no merchant
has this id), and an entry's number is its position. Anyone who removes the end of the log and repairs its
head can't sign a checkpoint for that.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from merchant_wallet.audit.records import QUERIES, Connection
from merchant_wallet.audit.verify import AuditViolation
from merchant_wallet.book.checkpoint_keys import CheckpointKeys
from merchant_wallet.book.checkpoints import Checkpoint, CheckpointFile, CheckpointLine

FILE: Final = "audit.jsonl"
NO_MERCHANT: Final = 0


class CheckpointReport(msgspec.Struct, frozen=True):
    """How many checkpoints are right, whether a crash left the last line torn, and the first wrong one."""

    checked: int
    torn: bool
    violation: AuditViolation | None


async def read_head(conn: Connection, now_ms: int) -> Checkpoint | None:
    """The unsigned checkpoint of the log as it is now. None while the log is empty."""
    row = await (await conn.execute(QUERIES["read_head"].text)).fetchone()
    if row is None or not row[0]:
        return None
    count, head_hash, _ = row
    return Checkpoint(NO_MERCHANT, count, count, bytes(head_hash).hex(), now_ms)


async def check_checkpoints(conn: Connection, keys: CheckpointKeys, directory: Path) -> CheckpointReport:
    """Compare every checkpoint with the log as it is now, in the order they were written."""
    if keys.problem is not None:
        return CheckpointReport(0, False, AuditViolation(keys.problem))
    checked, last_count = 0, 0
    file = CheckpointFile(directory / FILE, keys)
    while lines := await asyncio.to_thread(file.read):
        sound = [line.checkpoint for line in lines if line.checkpoint is not None and line.problem is None]
        hashes = await read_hashes(conn, [checkpoint.last_entry_id for checkpoint in sound])
        for line in lines:
            violation = _judge(line, hashes, last_count)
            if violation is not None:
                return CheckpointReport(checked, file.torn, violation)
            checked += 1
            last_count = line.checkpoint.entry_count if line.checkpoint is not None else last_count
    return CheckpointReport(checked, file.torn, None)


async def read_hashes(conn: Connection, audit_nos: Sequence[int]) -> Mapping[int, str]:
    """The current hashes of these entries. Missing entries are left out."""
    cursor = await conn.execute(QUERIES["read_hashes"].text, {"audit_nos": list(audit_nos)})
    return {audit_no: bytes(entry_hash).hex() for audit_no, entry_hash in await cursor.fetchall()}


def _judge(line: CheckpointLine, hashes: Mapping[int, str], last_count: int) -> AuditViolation | None:
    checkpoint, place = line.checkpoint, f"line {line.line_no} of {FILE}"
    if line.problem is not None or checkpoint is None:
        audit_no = None if checkpoint is None else checkpoint.last_entry_id
        return AuditViolation(f"{place} {line.problem}", audit_no)
    audit_no = checkpoint.last_entry_id
    if checkpoint.merchant_id != NO_MERCHANT:
        text = f"{place} is not of this log"
    elif checkpoint.entry_count < last_count or audit_no != checkpoint.entry_count:
        text = f"{place} counts {checkpoint.entry_count} entries up to {audit_no}"
    elif audit_no not in hashes:
        text = f"a checkpoint saw entry {audit_no}, which is gone ({place})"
    elif hashes[audit_no] != checkpoint.head_hash:
        text = f"a checkpoint saw another hash of entry {audit_no} ({place})"
    else:
        return None
    return AuditViolation(text, audit_no)
