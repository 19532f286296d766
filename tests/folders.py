"""Folders for what tests write much to: in memory where there is room, otherwise in the temporary folder.

A disk's file system takes longer to make and remove the thousand files of a database than PostgreSQL takes
for what a test does with it.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

MEMORY: Final = Path("/dev/shm")
# Containers often get 64 MB there, which is too little.
ROOM_BYTES: Final = 3 * 2**30


def find_base() -> Path:
    """The folder in which such folders are made. Programs may not be started from there."""
    return MEMORY if _has_room(MEMORY) else Path(tempfile.gettempdir())


def make_folder(prefix: str) -> Path:
    """A folder that every user may pass into, since as root the database runs as another one."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=find_base()))
    folder.chmod(0o711)
    return folder


def copy_folder(source: Path, target: Path) -> None:
    """Copy a data folder with its owners and modes."""
    subprocess.run(["cp", "-a", "--reflink=auto", str(source), str(target)], check=True)


def _has_room(memory: Path) -> bool:
    """Whether this user can write there, and the machine has memory for the files."""
    if not os.access(memory, os.W_OK | os.X_OK) or shutil.disk_usage(memory).free < ROOM_BYTES:
        return False
    available = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return available is not None and int(available[1]) * 1024 >= 2 * ROOM_BYTES
