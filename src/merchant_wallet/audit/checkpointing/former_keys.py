"""The public keys of checkpoints that were replaced (`accept-rollback --new-key`), where they can be trusted.

Rules:
- A replaced key is trusted if the database names it, and the kept `checkpoint.pub` of the acceptance is it.
- The acceptance's entry in the audit log has the SHA-256 of the list of kept files, the list has that of the
  file, and a checkpoint of today's key covers the entry. So whoever can write to the database alone, or to
  the folder alone, can't pass a key of his own off as a former one.
- It counts for what was signed before it was replaced.
"""

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.audit import checkpoints as audit_checkpoints
from merchant_wallet.audit import records
from merchant_wallet.audit.checkpointing.acceptance import ACTION, MAX_ACCEPTANCES
from merchant_wallet.audit.checkpointing.evidence_files import EVIDENCE, LIST_FILE, EvidenceFile
from merchant_wallet.audit.records import AuditEntry
from merchant_wallet.audit.rollback.comparison import read_last_checkpoint
from merchant_wallet.audit.verify import verify
from merchant_wallet.book.checkpoint_keys import (
    PUBLIC_KEY_FILE,
    CheckpointKeys,
    FormerKey,
    list_pinned,
    parse_public_key,
)

MAX_KEY_FILE_BYTES: Final = 1024

Connection = AsyncConnection[Any]


class FormerKeys(msgspec.Struct, frozen=True):
    """The trusted keys, and why others that the database names are not."""

    keys: tuple[FormerKey, ...]
    problem: str | None = None


class _List(msgspec.Struct):
    """What is read of an acceptance's list."""

    files: list[EvidenceFile]


async def read_former_keys(conn: Connection, folder: Path, keys: CheckpointKeys) -> FormerKeys:
    """The former keys of the service. `conn` commits by itself and is in no transaction. Raises OSError."""
    wanted = set(await list_pinned(conn)) - {keys.public_key}
    if not wanted:
        return FormerKeys(())
    told = await records.list_entries(conn, action=ACTION, limit=MAX_ACCEPTANCES)
    replaced = [entry for entry in told if (entry.after or {}).get("newKey") is True]
    problem = await _find_problem(conn, folder, keys, replaced)
    if problem is not None:
        return FormerKeys((), problem)
    kept = await asyncio.to_thread(_read_kept, folder, replaced)
    found = tuple([one for one in kept if one.public_key in wanted])
    missing = wanted - {one.public_key for one in found}
    if not missing:
        return FormerKeys(found)
    names = " or ".join(sorted(map(bytes.hex, missing)))
    return FormerKeys(found, f"{folder / EVIDENCE} has no accepted checkpoint.pub with {names}")


async def _find_problem(
    conn: Connection, folder: Path, keys: CheckpointKeys, replaced: Sequence[AuditEntry]
) -> str | None:
    """Why the audit log proves nothing about the acceptances."""
    if keys.problem is not None:
        return keys.problem
    if not replaced:
        return "the audit log has no replacement of the key"
    report = await verify(conn)
    seen = await audit_checkpoints.check_checkpoints(conn, keys, folder)
    violation = report.violation or seen.violation
    if violation is not None:
        return f"the audit log is not intact ({violation.text}): see `merchant-wallet audit verify`"
    path = folder / audit_checkpoints.FILE
    last = read_last_checkpoint(path, audit_checkpoints.NO_MERCHANT, keys) if path.exists() else None
    covered = 0 if last is None or last.checkpoint is None else last.checkpoint.entry_count
    if covered < replaced[0].audit_no:
        return "no checkpoint of the new key covers the audit log yet: start `work`, and wait a minute"
    return None


def _read_kept(folder: Path, replaced: Sequence[AuditEntry]) -> list[FormerKey]:
    """The public keys that acceptances kept."""
    return [
        FormerKey(public_key, entry.at_ms)
        for entry in replaced
        for public_key in _read_keys(folder / EVIDENCE, entry.after or {})
    ]


def _read_keys(evidence: Path, told: dict[str, Any]) -> Iterator[bytes]:
    name = told.get("evidence")
    if not isinstance(name, str) or Path(name).name != name:
        return
    for file in _read_list(evidence / name, told.get("evidenceSha256")):
        # A repeated acceptance numbers what it moves later.
        if not file.name.startswith(PUBLIC_KEY_FILE) or Path(file.name).name != file.name:
            continue
        content = _read(evidence / name / file.name)
        if content is None or hashlib.sha256(content).hexdigest() != file.sha256:
            continue
        try:
            yield parse_public_key(content.decode("ascii"))
        except ValueError:
            continue


def _read_list(kept: Path, sha256: object) -> list[EvidenceFile]:
    """The list that the audit log names. A repeated acceptance keeps earlier ones beside it."""
    for path in sorted(kept.glob(f"{LIST_FILE}*")):
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() == sha256:
            return msgspec.json.decode(content, type=_List).files
    return []


def _read(path: Path) -> bytes | None:
    """A small file; None if it is missing or too long."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_KEY_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    return content if len(content) <= MAX_KEY_FILE_BYTES else None
