"""Writes the file and the manifest of one month of a book.

The file grows under a name of its own, `.part`, is forced to the disk and then gets its name. The manifest is
written last. A killed writer leaves at most a `.part` or a file that the database does not know; the next one
writes the same bytes again. A file with other entries is never overwritten.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from merchant_wallet.base.atomic_files import replace_file, sync_folder
from merchant_wallet.base.file_ownership import follow_owner
from merchant_wallet.book.archive.files import (
    BLOCK_ENTRIES,
    FORMAT,
    ArchiveFolder,
    Block,
    Manifest,
    encode_entries,
    format_text_to_sign,
    make_digest,
)
from merchant_wallet.book.state import Entry

FOLDER_MODE: Final = 0o750
FILE_MODE: Final = 0o640
"""The folder's owner and its group, which is the web user's if web and worker have own users."""

Sign = Callable[[str], str]
"""Gives the hex signature of a text."""


class OtherFile(Exception):
    """There is a file of that month with other entries. The text says what to do."""


class MonthWriter:
    """Writes one month. `finish` gives the file its name; without it, `discard` removes the part."""

    def __init__(self, folder: ArchiveFolder, merchant_id: int, month: str, previous_hash: bytes) -> None:
        self._folder = folder
        self._path = folder.file_of(merchant_id, month)
        self._manifest_path = folder.manifest_of(merchant_id, month)
        self._merchant_id = merchant_id
        self.month = month
        self._previous_hash = previous_hash
        self._part = self._path.with_suffix(".part")
        self._file: BinaryIO = _create(folder.path, self._part)
        self._waiting: list[Entry] = []
        self._blocks: list[Block] = []
        self._offset = 0
        self._postings = 0
        self._last_hash = previous_hash

    def add(self, entry: Entry) -> None:
        """Add the next entry."""
        self._waiting.append(entry)
        self._postings += len(entry.postings)
        self._last_hash = entry.hash
        if len(self._waiting) == BLOCK_ENTRIES:
            self._write_block()

    def _write_block(self) -> None:
        packed = encode_entries(self._waiting)
        first, last = self._waiting[0], self._waiting[-1]
        digest = hashlib.sha256(packed).hexdigest()
        ends = (first.entry_id, last.entry_id, first.at_ms, last.at_ms)
        self._blocks.append(Block(self._offset, len(packed), digest, len(self._waiting), *ends))
        self._file.write(packed)
        self._offset += len(packed)
        self._waiting = []

    def finish(self, sign: Sign, written_ms: int) -> Manifest:
        """Force the file to the disk, name it, and write its signed manifest. Raises OSError."""
        if self._waiting:
            self._write_block()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        manifest = self._make_manifest(written_ms)
        earlier = self._read_earlier()
        if earlier is not None:
            manifest = msgspec.structs.replace(manifest, written_ms=earlier.written_ms)
            if make_digest(manifest) != make_digest(earlier):
                raise OtherFile(
                    f"{self._manifest_path} is there already, with other entries: another database may use"
                    " this folder. Move the file away, or name another folder with WALLET_ARCHIVE_DIR"
                )
        self._part.replace(self._path)
        sync_folder(self._path.parent)
        return write_manifest(self._manifest_path, manifest, sign)

    def _read_earlier(self) -> Manifest | None:
        """The manifest that a killed run has left, or another database. Raises ArchiveUnreadable."""
        if not self._manifest_path.exists():
            return None
        return self._folder.read_manifest(self._merchant_id, self.month)

    def _make_manifest(self, written_ms: int) -> Manifest:
        first, last = self._blocks[0], self._blocks[-1]
        return Manifest(
            format=FORMAT,
            merchant_id=self._merchant_id,
            month=self.month,
            entries=sum([block.entries for block in self._blocks]),
            postings=self._postings,
            first_id=first.first_id,
            last_id=last.last_id,
            first_ms=first.first_ms,
            last_ms=last.last_ms,
            previous_hash=self._previous_hash.hex(),
            last_hash=self._last_hash.hex(),
            written_ms=written_ms,
            blocks=tuple(self._blocks),
        )

    def discard(self) -> None:
        """Remove what was written so far."""
        self._file.close()
        self._part.unlink(missing_ok=True)


def write_manifest(path: Path, manifest: Manifest, sign: Sign) -> Manifest:
    """Sign a manifest and write it, whole or not at all. Raises OSError."""
    signed = msgspec.structs.replace(manifest, signature=sign(format_text_to_sign(manifest)))
    replace_file(path, msgspec.json.encode(signed) + b"\n", mode=FILE_MODE)
    _follow_owner(path)
    return signed


def _create(folder: Path, part: Path) -> BinaryIO:
    for one in (folder, part.parent):
        if not one.is_dir():
            one.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            if one != folder:
                _follow_owner(one)
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    follow_owner(descriptor, part.parent)
    return os.fdopen(descriptor, "wb")


def _follow_owner(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        follow_owner(descriptor, path.parent)
    finally:
        os.close(descriptor)
