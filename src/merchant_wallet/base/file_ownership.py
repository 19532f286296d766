"""Who owns files that root makes in a folder of another user."""

import os
from pathlib import Path


def follow_owner(descriptor: int, folder: Path) -> None:
    """Give an open file to the owner of its folder, when this process is root's; others own what they make.

    So the user of a folder can still read what a command of root's made in it. Raises OSError.
    """
    if os.geteuid() == 0:
        owner = folder.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
