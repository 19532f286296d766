"""Sign checkpoints and append them to their files.

Rules:
- A file is written under its own lock, one whole line at a time, and synced to disk. A torn last line is
  removed first.
"""

import asyncio
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from psycopg import AsyncConnection

from merchant_wallet.audit import checkpoints as audit_checkpoints
from merchant_wallet.base import ids
from merchant_wallet.base.atomic_files import sync_folder
from merchant_wallet.base.file_ownership import follow_owner
from merchant_wallet.book.checkpoint_keys import CheckpointKeys
from merchant_wallet.book.checkpoints import (
    QUERIES,
    Checkpoint,
    file_of,
    format_text_to_sign,
    read_tail,
)

INTERVAL_MS: Final = 60_000
FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o640
"""Only the folder's owner can open the files, and the web user's group if web and worker have own users."""


class CheckpointSigner:
    """Holds the private key, 32 bytes. `keys` verifies its signatures."""

    def __init__(self, private_key: bytes) -> None:
        self._private_key = Ed25519PrivateKey.from_private_bytes(private_key)
        self.keys = CheckpointKeys(self._private_key.public_key().public_bytes_raw())

    @property
    def public_key(self) -> bytes:
        """The public key that verifies its signatures."""
        assert self.keys.public_key is not None
        return self.keys.public_key

    def sign(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return the checkpoint with its signature."""
        return msgspec.structs.replace(checkpoint, signature=self.sign_text(format_text_to_sign(checkpoint)))

    def sign_text(self, text: str) -> str:
        """The hex signature of a text. Each kind of text begins with its own word."""
        return self._private_key.sign(text.encode()).hex()


async def read_heads(conn: AsyncConnection, now_ms: int) -> list[Checkpoint]:
    """The unsigned checkpoints of all books as they are now. Books without entries have none."""
    rows = await (await conn.execute(QUERIES["read_heads"].text)).fetchall()
    return [
        Checkpoint(merchant_id, count, ids.compose(range_no, counter), head_hash.hex(), now_ms)
        for merchant_id, range_no, counter, count, head_hash in rows
    ]


async def write_audit_checkpoint(
    conn: AsyncConnection,
    signer: CheckpointSigner,
    directory: Path,
    now_ms: int,
    *,
    interval_ms: int = INTERVAL_MS,
) -> bool:
    """Append a checkpoint for the audit log if it has grown. Returns whether it did. Raises OSError."""
    head = await audit_checkpoints.read_head(conn, now_ms)
    if head is None:
        return False
    return bool(await asyncio.to_thread(append_all, signer, directory, [head], interval_ms))


def append_all(
    signer: CheckpointSigner, directory: Path, heads: Iterable[Checkpoint], interval_ms: int = INTERVAL_MS
) -> int:
    """Append the checkpoints that are due, and return how many.

    A journal's is due if the journal has grown and the last one is `interval_ms` old. Several processes may
    call this at once. Raises OSError if the folder can't be written.
    """
    directory.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    return sum([_append(signer, _file_of(directory, head), head, interval_ms) for head in heads])


def _file_of(directory: Path, head: Checkpoint) -> Path:
    if head.merchant_id == audit_checkpoints.NO_MERCHANT:
        return directory / audit_checkpoints.FILE
    return file_of(directory, head.merchant_id)


def _append(signer: CheckpointSigner, path: Path, head: Checkpoint, interval_ms: int) -> bool:
    file = _open_locked(path)
    try:
        size = os.fstat(file).st_size
        if not size:
            follow_owner(file, path.parent)
        tail = read_tail(signer.keys, file, size)
        last = None if tail.last is None or tail.last.problem is not None else tail.last.checkpoint
        if last is not None and not _is_due(last, head, interval_ms):
            return False
        _write_line(file, tail.whole_bytes, size, signer.sign(head))
    finally:
        os.close(file)
    if not size:
        sync_folder(path.parent)
    return True


def _open_locked(path: Path) -> int:
    """Open and lock the file of this name. Creates it if it is missing."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, FILE_MODE)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            # An acceptance may have moved the file away while this waited for the lock.
            if _is_at(path, file):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _is_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _is_due(last: Checkpoint, head: Checkpoint, interval_ms: int) -> bool:
    # Another process may have written a later head meanwhile. A clock that was set back must not stop the
    # writing.
    return head.entry_count > last.entry_count and not 0 <= head.at_ms - last.at_ms < interval_ms


def _write_line(file: int, whole_bytes: int, size: int, checkpoint: Checkpoint) -> None:
    if whole_bytes < size:
        os.ftruncate(file, whole_bytes)
    os.write(file, msgspec.json.encode(checkpoint) + b"\n")
    os.fsync(file)
