"""Files that are written whole or not at all."""

import os
from pathlib import Path

import pytest

from merchant_wallet.base.atomic_files import READABLE, create_file, replace_file


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_file_is_replaced_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "note.json"
    replace_file(path, b"first")
    replace_file(path, b"second")

    assert path.read_bytes() == b"second"
    assert _mode(path) == 0o600
    assert os.listdir(tmp_path) == ["note.json"]


def test_a_file_for_all_is_as_readable_as_the_umask_lets_it(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        replace_file(tmp_path / "public.key", b"key", mode=READABLE)
    finally:
        os.umask(umask)

    assert _mode(tmp_path / "public.key") == 0o644


def test_a_file_that_is_there_is_not_created_again(tmp_path: Path) -> None:
    path = tmp_path / "master.key"

    assert create_file(path, b"first")
    assert not create_file(path, b"second")
    assert path.read_bytes() == b"first"
    assert _mode(path) == 0o600
    assert os.listdir(tmp_path) == ["master.key"]


def test_a_file_whose_draft_cannot_be_finished_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "note.json"
    replace_file(path, b"first")

    def fail(descriptor: int) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", fail)
    for write in (replace_file, create_file):
        with pytest.raises(OSError, match="full"):
            write(path, b"second")

    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["note.json"]
