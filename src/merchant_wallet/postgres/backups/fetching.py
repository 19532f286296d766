"""Gets a base back-up and WAL from a store, for the server that replays them.

Rules:
- Nothing is used before it was authenticated: an object of WAL or history as a whole, the archive of a base
  back-up at its end, by the digest in its signed manifest.
- Nothing grows beyond what its name or its manifest says.
- An archive has files and folders below its own. A link, a path to another place or a table space is refused.
- Files that tell a server what to do are left out (`LEFT_OUT`): ours take their place.
"""

import hashlib
import io
import os
import shutil
import tarfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, Self

import msgspec

from merchant_wallet.base.counted import count_of
from merchant_wallet.postgres.backups import catalogue, names
from merchant_wallet.postgres.backups.base import GZIP_WINDOW, Manifest
from merchant_wallet.postgres.backups.catalogue import BaseBackup, Catalogue, StoredWal
from merchant_wallet.postgres.backups.encryption import BackupKey
from merchant_wallet.postgres.backups.errors import BackupError, ObjectGone
from merchant_wallet.postgres.backups.names import SEGMENT_BYTES, Fork
from merchant_wallet.postgres.backups.stores import Store
from merchant_wallet.postgres.cluster import SETTINGS_FILES, give
from merchant_wallet.postgres.programs import Programs

LIST_TRIES: Final = 20
COPY_BYTES: Final = 2**20
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

Say = Callable[[str], None]


def require_authentic(store: Store, key: BackupKey, base: BaseBackup) -> Manifest | None:
    """The manifest of a base back-up. None if a person accepts one of before there were any.

    Raises BackupError, StoreAway.
    """
    name = f"{base.folder}/{base.completed.name}"
    with store.read(name) as source:
        content = key.open(name, source, MANIFEST_BYTES)
    if not content and not key.is_authenticating:
        return None
    try:
        return msgspec.json.decode(content, type=Manifest)
    except msgspec.MsgspecError as error:
        raise BackupError(f"{name} is no manifest ({error}). Use another back-up.") from error


class Fetcher:
    """Gets objects from a store, for the user of the server."""

    def __init__(self, store: Store, key: BackupKey, programs: Programs, say: Say) -> None:
        self._store = store
        self._key = key
        self._programs = programs
        self._say = say

    def fetch_base(self, base: BaseBackup, target: Path) -> None:
        """Unpack the files of a base back-up into an empty folder. Raises BackupError."""
        manifest = require_authentic(self._store, self._key, base)
        name = f"{base.folder}/{catalogue.DATA}"
        with self._decrypted(name) as stream:
            archive = _Digested(stream)
            self._unpack_all(archive, target, manifest)
            # Only the end of the stream shows that nothing was cut.
            while archive.read(COPY_BYTES):
                pass
        if manifest is not None and archive.digest() != manifest.sha256:
            raise BackupError(f"{name} is not what its manifest says: it was replaced. Use another back-up.")

    def _unpack_all(self, source: "_Digested", target: Path, manifest: Manifest | None) -> None:
        with tarfile.open(fileobj=source, mode="r|gz", tarinfo=_Member) as archive:
            for done, member in enumerate(archive):
                if manifest is not None and member.offset_data + member.size > manifest.archive_bytes:
                    raise BackupError("The archive is longer than its manifest says. Use another back-up.")
                self._unpack(archive, member, target)
                self._say(f"unpacking the back-up: {count_of(done, 'file')}")

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
        if member.isdir():
            path.mkdir(mode=0o700, exist_ok=True)
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
            with os.fdopen(write_end, "wb") as target:
                try:
                    with self._store.read(name) as source:
                        self._key.open_stream(name, source, target)
                except Exception as error:
                    failures.append(error)

        thread = threading.Thread(target=decrypt, daemon=True)
        thread.start()
        try:
            with os.fdopen(read_end, "rb") as stream:
                yield stream
        except (tarfile.TarError, EOFError, OSError, ValueError) as error:
            thread.join()
            raise failures[0] if failures else BackupError(f"{name} is damaged: {error}") from error
        thread.join()
        if failures:
            raise failures[0]

    def fetch_wal(self, found: Catalogue, base: BaseBackup, base_wal: Path, target: Path) -> Catalogue:
        """Get all WAL that the replay may ask for, as PostgreSQL's segments. Returns what the store has.

        `base_wal` is the folder of the WAL in the base back-up. The store may have only a part of its last
        segment, and PostgreSQL prefers a file that it is given to the one in the back-up. Both go into one.
        A running `up` replaces the parts of a segment by the whole one. Then the store is listed again.
        """
        for _ in range(LIST_TRIES):
            try:
                self._fetch_wal(found, base, base_wal, target)
            except ObjectGone:
                found = catalogue.read_catalogue(self._store, found.system)
            else:
                return found
        raise BackupError("The store's WAL changes faster than it can be read: try again later.")

    def _fetch_wal(self, found: Catalogue, base: BaseBackup, base_wal: Path, target: Path) -> None:
        needed = found.list_needed(base)
        for done, stored in enumerate(needed):
            self._say(f"fetching WAL: {done} of {len(needed)} objects")
            path, in_base = (folder / stored.part.segment for folder in (target, base_wal))
            if not stored.part.is_whole and not path.exists() and in_base.exists():
                self._write(path, in_base.read_bytes(), 0)
            self._add_part(stored, target)
        timeline = found.find_end(base).timeline
        for fork in found.forks:
            # Of a timeline that is not followed PostgreSQL only sees that its number is taken.
            content = (
                self._open_history(f"{found.system}/{catalogue.HISTORY}/{fork.name}", fork)
                if fork.timeline == timeline
                else names.format_history(fork).encode()
            )
            self._write(target / f"{fork.timeline:08X}.history", content, 0)

    def _add_part(self, stored: StoredWal, target: Path) -> None:
        name, size = stored.object.name, stored.part.end - stored.part.start
        unpacking = zlib.decompressobj(GZIP_WINDOW)
        try:
            content = unpacking.decompress(self._open(name, WAL_BYTES), size + 1)
        except zlib.error as error:
            raise BackupError(f"{name} is damaged: {error}.") from error
        if len(content) != size or not unpacking.eof:
            raise BackupError(f"{name} does not contain what its name says.")
        self._write(target / stored.part.segment, content, stored.part.start % SEGMENT_BYTES, SEGMENT_BYTES)

    def _open_history(self, name: str, fork: Fork) -> bytes:
        content = self._open(name, HISTORY_BYTES)
        try:
            is_right = names.read_history(content.decode(), fork.timeline) == fork
        except (ValueError, IndexError):
            is_right = False
        if not is_right:
            raise BackupError(f"{name} does not contain what its name says.")
        return content

    def _open(self, name: str, most_bytes: int) -> bytes:
        with self._store.read(name) as source:
            return self._key.open(name, source, most_bytes)

    def _write(self, path: Path, content: bytes, offset: int, size: int = 0) -> None:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            if size:
                # What was not stored yet is zero, which PostgreSQL takes for the end of the WAL.
                file.truncate(size)
            file.seek(offset)
            file.write(content)
        give(path, self._programs)


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


class _Digested(io.RawIOBase):
    """A stream, and the SHA-256 of what was read of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream = stream
        self._sha256 = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        content = self._stream.read(size)
        self._sha256.update(content)
        return content

    def digest(self) -> str:
        return self._sha256.hexdigest()
