"""The runtime file that a running `up` leaves for commands: its content, who may read it, when it is
removed.
"""

import os
import stat
from pathlib import Path

import pytest

from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.settings import Settings
from merchant_wallet.processes.runtime_file import (
    RUNTIME_FILE,
    SHARED,
    RuntimeInfo,
    read_runtime_file,
    remove_runtime_file,
    write_runtime_file,
)
from merchant_wallet.processes.up import ProcessSupervisor

URL = "postgresql://wallet:hidden@db.example/wallet"


def test_what_was_told_from_outside_is_noted_for_the_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new folder"
    assert write_runtime_file(Settings(data=folder, database_url=URL, checkpoint_dir=Path("apart")))
    found = read_runtime_file(folder)
    assert (found.database_url, found.checkpoint_dir) == (URL, str(Path("apart").absolute()))
    shared = {name: getattr(Settings(), name) for name in SHARED}
    assert found.list_shared() == {name: value for name, value in shared.items() if value is not None}
    assert stat.S_IMODE((folder / RUNTIME_FILE).stat().st_mode) == 0o600
    assert os.listdir(folder) == [RUNTIME_FILE]


def test_a_newer_file_replaces_an_older_one_and_no_content_removes_it(tmp_path: Path) -> None:
    write_runtime_file(Settings(data=tmp_path, database_url=URL))
    write_runtime_file(Settings(data=tmp_path, checkpoint_dir=tmp_path))
    found = read_runtime_file(tmp_path)
    assert (found.database_url, found.checkpoint_dir) == (None, str(tmp_path))
    assert not write_runtime_file(Settings(data=tmp_path))
    assert os.listdir(tmp_path) == []
    assert read_runtime_file(tmp_path) == RuntimeInfo()
    remove_runtime_file(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"databaseUrl": 5}', '{"databaseUrl": "x:hidden'])
def test_a_malformed_note_is_named_and_not_repeated(tmp_path: Path, text: str) -> None:
    (tmp_path / RUNTIME_FILE).write_text(text)
    with pytest.raises(ConfigError, match="is malformed") as raised:
        read_runtime_file(tmp_path)
    assert "hidden" not in str(raised.value)


def test_a_supervisor_that_never_started_leaves_anothers_runtime_file_alone(tmp_path: Path) -> None:
    write_runtime_file(Settings(data=tmp_path, database_url=URL))
    unreachable = "postgresql://wallet@127.0.0.1:1/wallet"
    second = ProcessSupervisor(Settings(data=tmp_path, database_url=unreachable), {}, print, print)
    with pytest.raises(Exception, match="refused"):
        second.run()
    assert read_runtime_file(tmp_path).database_url == URL
