"""Folders for tests that write much: in memory if there is room, otherwise in the temporary folder.

On a disk, creating and removing a database's thousand files takes longer than the test's work in PostgreSQL.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

MEMORY: Final = Path("/dev/shm")
# Containers often have only 64 MB there, which is too little.
ROOM_BYTES: Final = 3 * 2**30


def find_base() -> Path:
    """The parent of such folders. Programs can't be started from it."""
    return MEMORY if _has_room(MEMORY) else Path(tempfile.gettempdir())


def make_folder(prefix: str) -> Path:
    """A folder that every user may enter: as root, the database runs as another user."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=find_base()))
    folder.chmod(0o711)
    return folder


def copy_folder(source: Path, target: Path) -> None:
    """Copy a data folder with its owners and modes."""
    subprocess.run(["cp", "-a", "--reflink=auto", str(source), str(target)], check=True)


def _has_room(memory: Path) -> bool:
    """Whether this user can write there, and there is enough memory."""
    if not os.access(memory, os.W_OK | os.X_OK) or shutil.disk_usage(memory).free < ROOM_BYTES:
        return False
    available = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return available is not None and int(available[1]) * 1024 >= 2 * ROOM_BYTES
