"""The owner of files that root creates in another user's folder."""

import os
from pathlib import Path


def follow_owner(descriptor: int, folder: Path) -> None:
    """Give an open file to the owner of its folder, if this process is root's. Else the creator owns it.

    So the folder's user can still read what a command of root wrote there. Raises OSError.
    """
    if os.geteuid() == 0:
        owner = folder.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
