"""Where objects lie: a folder here, or a bucket of an S3-compatible store (`s3_store`).

Rules:
- An object appears whole or not at all. When `put` or a writer has ended, it survives a loss of power.
- Names are relative, with `/` between their parts. `list_objects` gives them in order.
- What does not answer is a StoreAway.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from merchant_wallet.base.atomic_files import OWNER_ONLY, replace_file, sync_folder
from merchant_wallet.base.outbound import PLAIN, Outbound
from merchant_wallet.postgres.backups.encryption import Reader, Writer
from merchant_wallet.postgres.backups.errors import BackupError, ObjectGone, StoreAway

FOLDER_MODE: Final = 0o700
DRAFT: Final = ".draft-"
MAX_DEPTH: Final = 8
"""No object is so deep. Others may have made folders to a depth at which walking fails."""
S3: Final = "s3"
PATIENCE_S: Final = 10
LONG_PATIENCE_S: Final = 180
"""For what takes long itself: a store has bad minutes. Longer repeats would outlive a request's signature."""


class StoredObject(NamedTuple):
    """An object in a list. `stored_ms` is the store's own time."""

    name: str
    size: int
    stored_ms: int


class Store(Protocol):
    """A place for objects. Everything raises StoreAway."""

    def put(self, name: str, content: bytes) -> None:
        """Store an object. An earlier one of that name is replaced."""
        ...

    def write(self, name: str) -> AbstractContextManager[Writer]:
        """Store an object of any length. After an exception there is none."""
        ...

    def read(self, name: str) -> AbstractContextManager[Reader]:
        """Read an object. Raises ObjectGone."""
        ...

    def list_objects(self, prefix: str = "") -> list[StoredObject]:
        """The objects whose names begin with a folder's name and `/`, or all."""
        ...

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects. One that is not there is no error."""
        ...


def open_store(url: str, outbound: Outbound = PLAIN, patience_s: int = PATIENCE_S) -> Store:
    """The store of a URL: `/a/folder`, `file:///a/folder` or `s3://bucket/prefix`. Raises BackupError.

    A bucket's requests are repeated for `patience_s`.
    """
    parts = urlsplit(url)
    if parts.scheme == S3:
        from merchant_wallet.postgres.backups.s3_store import S3Store

        return S3Store(parts.netloc, parts.path.strip("/"), outbound, patience_s)
    path = Path(parts.path if parts.scheme == "file" else url)
    if parts.scheme not in ("", "file") or not path.is_absolute():
        raise BackupError(f"{url} is no place for back-ups: give /a/folder or s3://bucket/prefix.")
    return FolderStore(path)


class FolderStore:
    """Objects are files below a folder, which should be another machine's or another disk's.

    Whoever can write there can make links and pipes. They are no objects.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, name: str, content: bytes) -> None:
        """See `Store`."""
        with _named(self._root):
            path = self._path(name)
            _make_folder(path.parent)
            replace_file(path, content)

    @contextmanager
    def write(self, name: str) -> Iterator[Writer]:
        """See `Store`."""
        with _named(self._root):
            path = self._path(name)
            _make_folder(path.parent)
            draft = path.with_name(f"{path.name}{DRAFT}{secrets.token_hex(8)}")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                with _named(self._root):
                    file.flush()
                    os.fsync(descriptor)
            with _named(self._root):
                draft.replace(path)
                sync_folder(path.parent)
        finally:
            draft.unlink(missing_ok=True)

    @contextmanager
    def read(self, name: str) -> Iterator[Reader]:
        """See `Store`."""
        with _named(self._root):
            try:
                descriptor = os.open(self._path(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except FileNotFoundError as error:
                raise ObjectGone(f"The back-up folder {self._root} has no {name} any more.") from error
        with os.fdopen(descriptor, "rb") as file:
            yield file

    def list_objects(self, prefix: str = "") -> list[StoredObject]:
        """See `Store`."""
        with _named(self._root):
            if not self._root.is_dir():
                raise StoreAway(f"{self._root} is not there: mount it, or create it.")
            return sorted(self._walk(self._root / prefix))

    def _walk(self, folder: Path) -> Iterator[StoredObject]:
        for where, folders, names in os.walk(folder):
            if len(Path(where).parts) - len(self._root.parts) >= MAX_DEPTH:
                folders.clear()
            for name in names:
                path = Path(where, name)
                if DRAFT in name or not (found := _stat(path)):
                    continue
                yield StoredObject(
                    path.relative_to(self._root).as_posix(), found.st_size, found.st_mtime_ns // 10**6
                )

    def delete(self, names: Iterable[str]) -> None:
        """See `Store`."""
        with _named(self._root):
            for name in names:
                self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        if not self._root.is_dir():
            # It is not created here: an empty folder may be a place where nothing is mounted.
            raise StoreAway(f"{self._root} is not there: mount it, or create it.")
        return self._root / name


def _stat(path: Path) -> os.stat_result | None:
    """What the system says of a file. None for what is none."""
    try:
        found = path.lstat()
    except OSError as error:
        # It was removed while the folder was listed, or no program can reach it by its name.
        if error.errno not in (errno.ENOENT, errno.ENAMETOOLONG):
            raise
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _make_folder(folder: Path) -> None:
    """Create a folder and those above it, and force their names to the disk."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        sync_folder(folder.parent)


@contextmanager
def _named(root: Path) -> Iterator[None]:
    """Say which folder an error of the system is about."""
    try:
        yield
    except OSError as error:
        raise StoreAway(f"The back-up folder {root}: {error.filename or ''}: {error.strerror}.") from error
