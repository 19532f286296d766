"""The option `--postgres-bin`, and the folders that it accepts."""

import shutil
from pathlib import Path

import pytest
from tests.other_postgres import Choice, NoPrograms, find_programs, read_version

from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres import find_programs as find_wheel


def write_program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_the_shared_server_has_the_version_of_the_chosen_programs(database_url: str) -> None:
    with connect_sync(database_url) as connection:
        running = connection.info.server_version // 10000
    assert running == read_version(Choice.folder or find_wheel())


def test_a_folder_without_the_programs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoPrograms, match="has no initdb and no postgres"):
        read_version(tmp_path)


def test_programs_that_do_not_start_are_refused(tmp_path: Path) -> None:
    write_program(tmp_path, "initdb", "exit 0")
    write_program(tmp_path, "postgres", "echo libicui18n.so.60 is missing >&2; exit 127")
    with pytest.raises(NoPrograms, match="does not start: libicui18n"):
        read_version(tmp_path)


def test_a_version_that_is_too_old_is_refused(tmp_path: Path) -> None:
    write_program(tmp_path, "initdb", "exit 0")
    write_program(tmp_path, "postgres", "echo 'postgres (PostgreSQL) 14.9 (Debian 14.9-1)'")
    with pytest.raises(NoPrograms, match=r"has PostgreSQL 14\. Version 15 or newer is needed"):
        read_version(tmp_path)


def test_another_version_in_a_versions_place_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "15/bin"
    folder.mkdir(parents=True)
    write_program(folder, "initdb", "exit 0")
    write_program(folder, "postgres", "echo 'postgres (PostgreSQL) 16.4'")
    monkeypatch.setattr("tests.other_postgres.DEBIAN", tmp_path)
    monkeypatch.setattr("tests.other_postgres.UNPACKED", tmp_path / "unpacked")
    with pytest.raises(NoPrograms, match="has another version than 15"):
        find_programs(15)
    shutil.rmtree(folder)
    with pytest.raises(NoPrograms, match="has no initdb"):
        find_programs(15)
