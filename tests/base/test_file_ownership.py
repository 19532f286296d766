"""What root creates in another user's folder belongs to that user."""

import os
from pathlib import Path

import pytest

from merchant_wallet.base.file_ownership import make_folder

NOBODY = 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_folders_belong_to_the_owner_of_the_folder_above_them(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    made = tmp_path / "evidence" / "1763712000000"
    for _ in range(2):
        make_folder(made, 0o750)
    assert [(path.stat().st_uid, path.stat().st_mode & 0o777) for path in (made.parent, made)] == [
        (NOBODY, 0o750)
    ] * 2
