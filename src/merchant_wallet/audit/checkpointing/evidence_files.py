"""Checkpoint files that are kept as evidence. They are moved to `evidence/<time>/`, with a list of them all.

Rules:
- A file is renamed under its lock. A process that waited for the lock then finds another file of that name,
  or none, and starts a new one.
- No file here is ever overwritten. An interrupted acceptance continues in its folder.

All raise OSError.
"""

import fcntl
import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, takewhile
from pathlib import Path
from typing import Final

import msgspec

from merchant_wallet.audit.checkpointing.signing import FOLDER_MODE
from merchant_wallet.base.atomic_files import READABLE, replace_file, sync_folder
from merchant_wallet.base.file_ownership import make_folder

EVIDENCE: Final = "evidence"
LIST_FILE: Final = "accepted.json"


class EvidenceFile(msgspec.Struct, frozen=True):
    """A kept file: its name, size and hex SHA-256."""

    name: str
    size: int
    sha256: str


def choose_folder(folder: Path, since_ms: int, named: Collection[str]) -> Path:
    """The folder for the evidence of an acceptance. It is the same one if the acceptance is repeated.

    `since_ms` is when the oldest evidence was found. The audit log names the `named` folders already.
    """
    names = (str(since_ms) if number == 1 else f"{since_ms}-{number}" for number in count(1))
    return folder / EVIDENCE / next(name for name in names if name not in named)


def move(folder: Path, names: Sequence[str], target: Path) -> list[EvidenceFile]:
    """Move files of a folder to `target`. Returns all files that are there now, except the list."""
    if names:
        make_folder(target, FOLDER_MODE)
    for name in names:
        with _locked(folder / name):
            (folder / name).rename(_find_free(target, name))
    if not target.is_dir():
        return []
    found = [_describe(path) for path in sorted(target.iterdir()) if not path.name.startswith(LIST_FILE)]
    _sync(target)
    return found


def write_list(target: Path, text: bytes) -> None:
    """Write the list beside its files, whole or not at all. An earlier list is kept beside it, once."""
    place = target / LIST_FILE
    if place.exists() and place.read_bytes() != text and not _is_kept(place):
        os.link(place, _find_free(target, LIST_FILE))
    replace_file(place, text, mode=READABLE)
    _sync(target)


def _is_kept(place: Path) -> bool:
    """Whether the newest copy of the list is this list. A crash before the new list leaves it so."""
    numbered = (place.with_name(f"{place.name}.{number}") for number in count(2))
    copies = list(takewhile(Path.exists, numbered))
    return bool(copies) and copies[-1].read_bytes() == place.read_bytes()


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _find_free(target: Path, name: str) -> Path:
    names = (name if number == 1 else f"{name}.{number}" for number in count(1))
    return next(path for path in (target / one for one in names) if not path.exists())


def _describe(path: Path) -> EvidenceFile:
    with _locked(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return EvidenceFile(path.name, os.fstat(descriptor).st_size, digest)


def _sync(target: Path) -> None:
    for folder in (target, target.parent, target.parent.parent):
        sync_folder(folder)
