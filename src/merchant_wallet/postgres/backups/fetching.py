"""Gets a base back-up and WAL from a store, for the server that replays them.

Rules:
- Nothing is used before it was authenticated: an object of WAL or history as a whole, the archive of a base
  back-up at its end, by the digest in its signed manifest.
- Nothing grows beyond what its name or its manifest says. Memory does not grow with what an archive has.
- An archive has files and folders below its own. A link, a path to another place or a table space is refused.
- Files that tell a server what to do are left out (`LEFT_OUT`): ours take their place.
- A disk that can't be written to is named, and says nothing about the back-up.
- Segments are fetched in parallel. A whole one appears under its name when it is on the disk, so a later
  attempt leaves it out. Segments that are put together of parts end in `.part`, and are fetched anew.
"""

import errno
import hashlib
import io
import os
import shutil
import tarfile
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, Self

import msgspec

from merchant_wallet.base.counted import count_of
from merchant_wallet.postgres.backups import catalogue, names
from merchant_wallet.postgres.backups.base import GZIP_WINDOW, Manifest
from merchant_wallet.postgres.backups.catalogue import BaseBackup, Catalogue, StoredWal
from merchant_wallet.postgres.backups.encryption import BackupKey
from merchant_wallet.postgres.backups.errors import (
    BackupError,
    ObjectGone,
    UnauthenticObject,
    UnusableObject,
)
from merchant_wallet.postgres.backups.names import SEGMENT_BYTES, Fork
from merchant_wallet.postgres.backups.stores import Store
from merchant_wallet.postgres.cluster import SETTINGS_FILES, give
from merchant_wallet.postgres.programs import Programs

LIST_TRIES: Final = 20
FETCHERS: Final = 8
"""Segments that are fetched at a time: each waits for the store most of the time."""
PART: Final = ".part"
MEGABYTE: Final = 10**6
COPY_BYTES: Final = 2**20
PACKED_READ_BYTES: Final = 2**16
LEFT_OUT: Final = frozenset(
    {*SETTINGS_FILES, "recovery.signal", "standby.signal", "postmaster.pid", "postmaster.opts"}
)
TABLE_SPACES: Final = "tablespace_map"
"""PostgreSQL makes links of this file's lines. `pg_basebackup` makes an empty one."""
MANIFEST_BYTES: Final = 4096
HISTORY_BYTES: Final = 2**16
"""A line for each restore there ever was."""
WAL_BYTES: Final = SEGMENT_BYTES + 2**16
"""A compressed segment. One that can't be compressed becomes a little longer."""

PACKED_OVERHEAD_BYTES: Final = 2**20
"""More than gzip adds to what it can't compress, beside a thousandth."""
TOO_LONG: Final = "The archive is longer than its manifest says."
OTHER_BASE: Final = "Use another back-up"
ACCEPT: Final = (
    "If you know it, `--unauthenticated` restores it all the same: whoever made it can run commands here."
)
REMOVE: Final = (
    "Remove this object from the store, keep a copy to find out who made it, and restore again: the rest is "
    "restored without it."
)

DISK_FAULTS: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
}

Say = Callable[[str], None]


def require_authentic(store: Store, key: BackupKey, base: BaseBackup) -> Manifest:
    """The manifest of a base back-up. Raises BackupError, StoreAway."""
    name = f"{base.folder}/{base.completed.name}"
    with store.read(name) as source:
        content = key.open(name, source, MANIFEST_BYTES)
    try:
        return msgspec.json.decode(content, type=Manifest)
    except msgspec.MsgspecError as error:
        raise UnusableObject(f"{name} is no manifest ({error}).") from error


class Fetcher:
    """Gets objects from a store, for the user of the server."""

    def __init__(self, store: Store, key: BackupKey, programs: Programs, say: Say) -> None:
        self._store = store
        self._key = key
        self._programs = programs
        self._say = say

    def read_manifest(self, base: BaseBackup) -> Manifest:
        """The manifest of a base back-up, as `require_authentic`. Raises BackupError."""
        with _advising():
            return require_authentic(self._store, self._key, base)

    def fetch_base(self, base: BaseBackup, manifest: Manifest, target: Path) -> None:
        """Unpack the files of a base back-up into an empty folder. Raises BackupError."""
        with _advising():
            self._fetch_base(base, manifest, target)

    def _fetch_base(self, base: BaseBackup, manifest: Manifest, target: Path) -> None:
        name = f"{base.folder}/{catalogue.DATA}"
        with self._decrypted(name) as stream:
            packed = _Digested(stream, manifest.archive_bytes)
            self._unpack_all(_Unzipped(packed), target, manifest.archive_bytes)
            # Only the end of the stream shows that nothing was cut.
            while packed.read(COPY_BYTES):
                pass
        if packed.digest() != manifest.sha256:
            raise UnusableObject(f"{name} is not what its manifest says: it was replaced.")

    def _unpack_all(self, source: "_Unzipped", target: Path, most_bytes: int) -> None:
        with tarfile.open(fileobj=source, mode="r|", bufsize=COPY_BYTES, tarinfo=_Member) as archive:
            for member in archive:
                # It keeps every member that it has read.
                archive.members.clear()  # type: ignore[attr-defined] # Not in its types.
                if member.offset_data + member.size > most_bytes:
                    raise UnusableObject(TOO_LONG)
                self._unpack(archive, member, target)
                self._say(
                    f"unpacking the back-up: {member.offset_data // MEGABYTE} of {most_bytes // MEGABYTE} MB"
                )

    def _unpack(self, archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
        name = Path(member.name)
        if name.is_absolute() or ".." in name.parts:
            raise BackupError(
                f"The back-up contains the file name {member.name}: it was not made by `backup`."
            )
        if str(name) in LEFT_OUT:
            return
        path = target / name
        if str(name) == TABLE_SPACES and member.size:
            raise BackupError("The back-up has table spaces, which a database of `up` has not: move them in.")
        with _writing(path):
            if member.isdir():
                path.mkdir(mode=0o700)
            else:
                source = archive.extractfile(member)
                assert source is not None
                with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    shutil.copyfileobj(source, file, COPY_BYTES)
            give(path, self._programs)

    @contextmanager
    def _decrypted(self, name: str) -> Iterator[IO[bytes]]:
        """The content of an object as a stream. A damaged object raises at the end of the block."""
        read_end, write_end = os.pipe()
        failures: list[Exception] = []

        def decrypt() -> None:
            try:
                with _Pipe(write_end) as target, self._store.read(name) as source:
                    self._key.open_stream(name, source, target)
            except BrokenPipeError:
                # The reader has refused the archive, and says why.
                pass
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=decrypt, daemon=True)
        thread.start()
        try:
            with os.fdopen(read_end, "rb") as stream:
                yield stream
        except (tarfile.TarError, EOFError, OSError, ValueError) as error:
            thread.join()
            raise failures[0] if failures else UnusableObject(f"{name} is damaged: {error}.") from error
        thread.join()
        if failures:
            raise failures[0]

    def fetch_wal(self, found: Catalogue, base: BaseBackup, base_wal: Path, target: Path) -> Catalogue:
        """Get all WAL that the replay may ask for, as PostgreSQL's segments. Returns what the store has.

        `base_wal` is the folder of the WAL in the base back-up. The store may have only a part of its last
        segment, and PostgreSQL prefers a file that it is given to the one in the back-up. Both go into one.
        A running `up` replaces the parts of a segment by the whole one. Then the store is listed again.
        """
        for path in target.iterdir():
            if not names.is_segment(path.name):
                path.unlink()
        for _ in range(LIST_TRIES):
            try:
                self._fetch_wal(found, base, base_wal, target)
            except ObjectGone:
                found = catalogue.read_catalogue(self._store, found.system)
            else:
                return found
        raise BackupError("The store's WAL changes faster than it can be read: try again later.")

    def _fetch_wal(self, found: Catalogue, base: BaseBackup, base_wal: Path, target: Path) -> None:
        try:
            self._fetch_needed(found, base, base_wal, target)
        except UnusableObject as error:
            # The base back-up was right, so only this object is wrong.
            raise BackupError(f"{error} {REMOVE}") from error

    def _fetch_needed(self, found: Catalogue, base: BaseBackup, base_wal: Path, target: Path) -> None:
        segments: dict[str, list[StoredWal]] = {}
        for stored in found.list_needed(base):
            segments.setdefault(stored.part.segment, []).append(stored)
        left = [parts for segment, parts in segments.items() if not (target / segment).exists()]
        done = len(segments) - len(left)
        with ThreadPoolExecutor(FETCHERS) as pool:
            fetched = [pool.submit(self._fetch_segment, parts, base_wal, target) for parts in left]
            try:
                for each in as_completed(fetched):
                    each.result()
                    done += 1
                    self._say(f"fetching WAL: {done} of {count_of(len(segments), 'segment')}")
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        end = found.find_end(base)
        # Of a timeline that is not followed PostgreSQL only sees that its number is taken.
        histories = {fork.file: names.format_history(fork).encode() for fork in found.forks}
        own = base_wal / names.name_history(end.timeline)
        if end.fork is not None:
            histories[end.fork.file] = self._open_history(found.system, end.fork)
        elif own.exists():
            # A base back-up has the history of its own timeline.
            histories[own.name] = own.read_bytes()
        for file, content in histories.items():
            self._write(target / file, content, 0)

    def _fetch_segment(self, parts: Sequence[StoredWal], base_wal: Path, target: Path) -> None:
        segment = parts[0].part.segment
        draft, in_base = target / f"{segment}{PART}", base_wal / segment
        is_whole = parts[0].part.is_whole
        if not is_whole and in_base.exists():
            self._write(draft, in_base.read_bytes(), 0)
        for stored in parts:
            self._add_part(stored, draft)
        if is_whole:
            with _writing(draft), draft.open("rb") as file:
                # After a loss of power it must not be whole by its name alone.
                os.fsync(file.fileno())
            draft.rename(target / segment)

    def _add_part(self, stored: StoredWal, path: Path) -> None:
        name, size = stored.object.name, stored.part.end - stored.part.start
        unpacking = zlib.decompressobj(GZIP_WINDOW)
        try:
            content = unpacking.decompress(self._open(name, WAL_BYTES), size + 1)
        except zlib.error as error:
            raise UnusableObject(f"{name} is damaged: {error}.") from error
        if len(content) != size or not unpacking.eof:
            raise UnusableObject(f"{name} does not contain what its name says.")
        self._write(path, content, stored.part.start % SEGMENT_BYTES, SEGMENT_BYTES)

    def _open_history(self, system: str, fork: Fork) -> bytes:
        name = f"{system}/{catalogue.HISTORY}/{fork.name}"
        content = self._open(name, HISTORY_BYTES)
        try:
            is_right = names.read_history(content.decode(), fork.timeline) == fork
        except (ValueError, IndexError):
            is_right = False
        if not is_right:
            raise UnusableObject(f"{name} does not contain what its name says.")
        return content

    def _open(self, name: str, most_bytes: int) -> bytes:
        with self._store.read(name) as source:
            return self._key.open(name, source, most_bytes)

    def _write(self, path: Path, content: bytes, offset: int, size: int = 0) -> None:
        mode = os.O_WRONLY | os.O_CREAT | (0 if size else os.O_TRUNC)
        with _writing(path):
            with os.fdopen(os.open(path, mode, 0o600), "wb") as file:
                if size:
                    # What was not stored yet is zero, which PostgreSQL takes for the end of the WAL.
                    file.truncate(size)
                file.seek(offset)
                file.write(content)
            give(path, self._programs)


@contextmanager
def _advising() -> Iterator[None]:
    """Say what to do if a base back-up is not right."""
    try:
        yield
    except UnauthenticObject as error:
        raise BackupError(f"{error} {OTHER_BASE}, and find out who made this one. {ACCEPT}") from error
    except UnusableObject as error:
        raise BackupError(f"{error} {OTHER_BASE}: `backup list` shows them.") from error


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Raises BackupError if the disk can't be written to."""
    try:
        yield
    except FileExistsError:
        # The archive has it twice.
        raise
    except OSError as error:
        fault = DISK_FAULTS.get(error.errno or 0, error.strerror)
        raise BackupError(
            f"{path} can't be written: {fault}. The back-up itself was not found wrong. Make room, or name "
            "another folder, and try again."
        ) from error


class _Pipe:
    """The writing end of a pipe. Nothing is left to be written when it is closed, which would fail then."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)

    def write(self, content: bytes, /) -> int:
        left = memoryview(content)
        while left:
            left = left[os.write(self._descriptor, left) :]
        return len(content)

    def flush(self) -> None:
        """Everything is written at once."""


class _Member(tarfile.TarInfo):
    """A header of an archive that `pg_basebackup` made: of a file or a folder, and of nothing else."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Raises BackupError before anything of another kind is read."""
        found = super().frombuf(buf, encoding, errors)
        if found.type not in (tarfile.REGTYPE, tarfile.DIRTYPE):
            raise BackupError(
                f"The back-up contains {found.name}, which is no file and no folder: make a folder of it."
            )
        return found


class _Digested:
    """A packed archive, and the SHA-256 of what was read of it. It fails soon after `most_bytes`."""

    def __init__(self, stream: IO[bytes], most_bytes: int) -> None:
        self._stream = stream
        self._sha256 = hashlib.sha256()
        self._left = most_bytes + most_bytes // 1000 + PACKED_OVERHEAD_BYTES

    def read(self, size: int) -> bytes:
        content = self._stream.read(size)
        self._sha256.update(content)
        self._left -= len(content)
        if self._left < 0:
            raise UnusableObject(TOO_LONG)
        return content

    def digest(self) -> str:
        return self._sha256.hexdigest()


class _Unzipped(io.RawIOBase):
    """What a packed archive contains. What follows the end of its gzip is not read."""

    def __init__(self, packed: _Digested) -> None:
        super().__init__()
        self._packed = packed
        self._unpacking = zlib.decompressobj(GZIP_WINDOW)

    def read(self, size: int = -1, /) -> bytes:
        while not self._unpacking.eof:
            packed = self._unpacking.unconsumed_tail or self._packed.read(PACKED_READ_BYTES)
            try:
                content = self._unpacking.decompress(packed, max(size, 0))
            except zlib.error as error:
                raise UnusableObject(f"The archive is damaged: {error}.") from error
            if content or not packed:
                return content
        return b""
