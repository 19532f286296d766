"""What must be on the disk before anything else is done."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
