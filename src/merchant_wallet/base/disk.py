"""Syncing to disk."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that the names in it are on the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
