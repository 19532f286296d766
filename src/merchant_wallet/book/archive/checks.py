"""Checks a month's file: against its manifest, the chain, the database and the signed checkpoints.

Every entry's hash is computed again from its content and the hash before. So a file can be wrong only if
somebody rewrote it together with all hashes after it, and those are in checkpoints and in the tables.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from merchant_wallet.book.archive.archived_journal import read_known_manifest
from merchant_wallet.book.archive.files import ArchiveFolder, ArchiveUnreadable, Manifest, is_signed
from merchant_wallet.book.archive.months import ArchivedMonth
from merchant_wallet.book.checkpoint_keys import CheckpointKeys
from merchant_wallet.book.checkpoints import CheckpointFile, file_of
from merchant_wallet.book.journal import FIRST_HASH, compute_entry_hash


class ArchiveWrong(Exception):
    """What is to be archived, or was archived, is not what the chain or a checkpoint says."""


def read_checkpointed(directory: Path, keys: CheckpointKeys, merchant_id: int) -> dict[int, str]:
    """The hash (hex) that each checkpoint of a book saw, by the entry. Raises ArchiveWrong, OSError."""
    if keys.problem is not None:
        raise ArchiveWrong(keys.problem)
    found = {}
    file = CheckpointFile(file_of(directory, merchant_id), keys)
    while lines := file.read():
        for line in lines:
            if line.problem is not None or line.checkpoint is None:
                raise ArchiveWrong(
                    f"line {line.line_no} of the checkpoints of merchant {merchant_id} {line.problem}"
                )
            found[line.checkpoint.last_entry_id] = line.checkpoint.head_hash
    return found


def check_month(
    folder: ArchiveFolder, month: ArchivedMonth, keys: CheckpointKeys, checkpointed: Mapping[int, str]
) -> Manifest:
    """Read a month's file from end to end and check it. Raises ArchiveUnreadable, ArchiveWrong."""
    manifest = read_known_manifest(folder, month)
    path = folder.manifest_of(month.merchant_id, month.month)
    if not is_signed(keys, manifest):
        raise ArchiveWrong(
            f"{path} is not signed with the checkpoint key. If the key was replaced, sign the archive again:"
            " `merchant-wallet archive sign`"
        )
    return check_content(folder, month, checkpointed)


def check_content(folder: ArchiveFolder, month: ArchivedMonth, checkpointed: Mapping[int, str]) -> Manifest:
    """As `check_month`, but for the signature."""
    manifest = read_known_manifest(folder, month)
    if _list_fields(manifest) != _list_row(month):
        path = folder.manifest_of(month.merchant_id, month.month)
        raise ArchiveWrong(f"{path} has other entries than the database says")
    check_entries(folder, manifest, checkpointed)
    return manifest


def check_order(months: Sequence[ArchivedMonth]) -> None:
    """Check that each month continues the one before. Raises ArchiveWrong. Pure."""
    last_hash = FIRST_HASH
    for month in months:
        if month.previous_hash != last_hash:
            raise ArchiveWrong(f"{month.month} does not continue the month before it in the archive")
        last_hash = month.last_hash


def check_entries(folder: ArchiveFolder, manifest: Manifest, checkpointed: Mapping[int, str]) -> None:
    """Compute the chain of a file again. Raises ArchiveUnreadable, ArchiveWrong."""
    path = folder.file_of(manifest.merchant_id, manifest.month)
    if not path.is_file() or path.stat().st_size != manifest.size:
        raise ArchiveUnreadable(
            f"{path} does not have {manifest.size} bytes. Bring the file back from its copy."
        )
    last_hash, last_ms, postings = bytes.fromhex(manifest.previous_hash), 0, 0
    for block in manifest.blocks:
        for entry in folder.read_block(manifest, block):
            last_hash = compute_entry_hash(manifest.merchant_id, last_hash, entry)
            if entry.hash != last_hash or entry.at_ms < last_ms:
                raise ArchiveWrong(f"{path}: entry {entry.entry_id} does not continue the chain")
            if checkpointed.get(entry.entry_id, last_hash.hex()) != last_hash.hex():
                raise ArchiveWrong(f"{path}: a checkpoint saw another hash of entry {entry.entry_id}")
            last_ms, postings = entry.at_ms, postings + len(entry.postings)
    if (last_hash.hex(), postings) != (manifest.last_hash, manifest.postings):
        raise ArchiveWrong(f"{path} ends with another hash or has other postings than its manifest says")


def _list_fields(manifest: Manifest) -> list[object]:
    m = manifest
    ends = [m.first_id, m.last_id, m.entries, m.postings, m.first_ms, m.last_ms]
    return [*ends, bytes.fromhex(m.previous_hash), bytes.fromhex(m.last_hash)]


def _list_row(month: ArchivedMonth) -> list[object]:
    m = month
    return [m.first_id, m.last_id, m.entries, m.postings, m.first_ms, m.last_ms, m.previous_hash, m.last_hash]
