"""The owner of files and folders that root creates in another user's folder."""

import os
from pathlib import Path


def follow_owner(descriptor: int, folder: Path) -> None:
    """Give an open file to the owner of its folder, if this process is root's. Else the creator owns it.

    So the folder's user can still read what a command of root wrote there. Raises OSError.
    """
    if os.geteuid() == 0:
        owner = folder.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def make_folder(path: Path, mode: int) -> None:
    """Create a folder, and those above it, each for the owner of the one above it. Raises OSError."""
    if path.is_dir():
        return
    make_folder(path.parent, mode)
    path.mkdir(mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        follow_owner(descriptor, path.parent)
    finally:
        os.close(descriptor)
