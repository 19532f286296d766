"""Files that are written whole or not at all, and names that are forced to the disk.

Rules:
- A draft is written beside the file and forced to the disk. Then it takes the file's name in one step, so
  nobody ever reads half a file.
- A key is created and never replaced: a key that is overwritten is money lost.

All raise OSError.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from merchant_wallet.base.file_ownership import follow_owner

OWNER_ONLY: Final = 0o600
READABLE: Final = 0o666
"""Readable by others as far as the umask lets them."""


def replace_file(path: Path, content: bytes, *, mode: int = OWNER_ONLY) -> None:
    """Write a file whole or not at all; an earlier one of that name is replaced."""
    with _drafted(path, content, mode) as draft:
        draft.replace(path)
    sync_folder(path.parent)


def create_file(path: Path, content: bytes) -> bool:
    """Write a file whole or not at all, for the owner of its folder alone. False: there is one already."""
    with _drafted(path, content, OWNER_ONLY, follows_owner=True) as draft:
        try:
            # A link never replaces.
            os.link(draft, path)
        except FileExistsError:
            return False
    sync_folder(path.parent)
    return True


@contextmanager
def _drafted(path: Path, content: bytes, mode: int, *, follows_owner: bool = False) -> Iterator[Path]:
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if follows_owner:
                follow_owner(descriptor, path.parent)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
