"""`backup`: what is refused, and what the answers say. The drill is tests/crash/test_backups.py."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.conftest import clean_environment
from typer.testing import CliRunner

from merchant_wallet.base.config import load_settings
from merchant_wallet.cli.backup_checks import find_newest, judge_base, judge_shipping
from merchant_wallet.cli.program import app
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.postgres.backups.base import Manifest
from merchant_wallet.postgres.backups.encryption import SIGNING_KEY, read_key_file
from merchant_wallet.postgres.backups.names import Completed
from merchant_wallet.postgres.backups.stores import FolderStore

STARTS = (1, 3, 4)


@pytest.fixture(autouse=True)
def _no_other_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in set(os.environ) - set(clean_environment()):
        monkeypatch.delenv(name)


def run(*words: object, status: int = 0, **settings: object) -> Any:
    """Run a command with these settings, expecting this exit status."""
    told = {f"WALLET_{name.upper()}": str(value) for name, value in settings.items()}
    result = CliRunner().invoke(app, list(map(str, words)), env=told)
    assert result.exit_code == status, result.output
    return result


def fill(folder: Path, system: str = "7") -> None:
    """A store with three base back-ups of a system."""
    folder.mkdir(exist_ok=True)
    store = FolderStore(folder)
    for number in STARTS:
        completed = Completed(1, number * 2**24 + 40, number * 2**24 + 300, number * 86_400_000)
        name = f"{system}/base/2026010{number}T000000Z"
        store.put(f"{name}/data.age", b"four")
        store.put(f"{name}/{completed.name}", b"")


def test_a_key_file_is_for_its_owner_alone_and_is_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "backup.key"
    told = json.loads(run("backup", "key", file, "--json").stdout)
    assert file.stat().st_mode & 0o777 == 0o600
    assert re.search(rf"^# recipient: {told['recipient']}$", file.read_text(), re.MULTILINE)
    content = file.read_text()
    assert "is there already" in run("backup", "key", file, status=1).stderr
    assert file.read_text() == content


def test_a_list_needs_no_key_and_says_how_far_each_reaches(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    told = json.loads(run("backup", "list", "--json", backup_url=tmp_path / "store").stdout)
    assert told["system"] == "7"
    assert [each["name"] for each in told["backups"]] == [f"2026010{number}T000000Z" for number in STARTS]
    assert [each["restorableToMs"] for each in told["backups"]] == [number * 86_400_000 for number in STARTS]
    assert told["backups"][0]["storedBytes"] == 4


def test_pruning_keeps_the_newest(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    told = json.loads(run("backup", "prune", "--keep", "1", "--json", backup_url=tmp_path / "store").stdout)
    assert told == {"kept": ["20260104T000000Z"], "removedObjects": 4}
    assert run("backup", "prune", "--keep", "0", status=2, backup_url=tmp_path / "store")


def test_pruning_and_doctor_with_the_keys_count_only_back_ups_that_are_authentic(tmp_path: Path) -> None:
    store = tmp_path / "store"
    fill(store)
    run("backup", "key", tmp_path / "backup.key")
    keys = read_key_file(tmp_path / "backup.key").with_signing_key(Keyring(b"\xab" * 32).derive(SIGNING_KEY))
    for number in STARTS[:2]:
        [complete] = [
            found.name
            for found in FolderStore(store).list_objects(f"7/base/2026010{number}T000000Z")
            if "complete" in found.name
        ]
        FolderStore(store).put(complete, keys.seal(complete, msgspec.json.encode(Manifest("", 1))))
    named: dict[str, Any] = {
        "backup_url": store,
        "backup_key_file": tmp_path / "backup.key",
        "master_key": "ab" * 32,
    }

    environment = {f"WALLET_{name.upper()}": str(value) for name, value in named.items()}
    newest, fault = find_newest(load_settings(environment))
    assert newest is not None
    assert judge_base(60, fault).advice == "run `backup create`"
    assert "7/base/20260104T000000Z/complete" in fault
    del environment["WALLET_MASTER_KEY"]
    environment["WALLET_DATA"] = str(tmp_path / "data")
    assert find_newest(load_settings(environment)) == (newest, "")

    told = run("backup", "prune", "--keep", "1", "--json", **named)
    assert json.loads(told.stdout) == {"kept": ["20260103T000000Z"], "removedObjects": 2}
    assert "Not counted: 7/base/20260104T000000Z/" in told.stderr
    assert json.loads(run("backup", "prune", "--keep", "2", "--json", **named).stdout)["removedObjects"] == 0


def test_a_store_of_several_databases_asks_which(tmp_path: Path) -> None:
    fill(tmp_path / "store", "7")
    fill(tmp_path / "store", "8")
    said = run("backup", "list", status=1, backup_url=tmp_path / "store").stderr
    assert "--system: 7, 8" in said
    assert run("backup", "list", "--system", "8", backup_url=tmp_path / "store")
    control = tmp_path / "data/postgres/global/pg_control"
    control.parent.mkdir(parents=True)
    control.write_bytes((8).to_bytes(8, sys.byteorder) + b"rest")
    own = run("backup", "list", "--json", "--data", tmp_path / "data", backup_url=tmp_path / "store")
    assert json.loads(own.stdout)["system"] == "8"
    assert "no such" in run("backup", "list", "--system", "9", status=1, backup_url=tmp_path / "store").stderr


def test_what_is_missing_is_said_with_the_setting_or_command_that_gives_it(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    store, key = tmp_path / "store", tmp_path / "backup.key"
    data = ("--data", tmp_path / "data")
    assert "WALLET_BACKUP_URL" in run("backup", "list", status=2).stderr
    assert "WALLET_BACKUP_KEY_FILE" in run("backup", "create", *data, status=2, backup_url=store).stderr
    run("backup", "key", key)
    named = {"backup_url": store, "backup_key_file": key}
    assert "No wallet is running" in run("backup", "create", *data, status=2, **named).stderr
    assert "backup create" in run("backup", "restore", *data, status=1, **named).stderr
    assert "mount it" in run("backup", "list", status=1, backup_url=tmp_path / "away").stderr
    gone = {**named, "backup_key_file": tmp_path / "gone"}
    assert "No such file" in run("backup", "restore", *data, status=2, **gone).stderr


def test_another_database_is_backed_up_with_its_own_tools(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    run("backup", "key", tmp_path / "backup.key")
    named = {
        "backup_url": tmp_path / "store",
        "backup_key_file": tmp_path / "backup.key",
        "database_url": "postgresql://wallet@127.0.0.1:1/wallet",
        "sandbox": "true",
    }
    for words in (("backup", "create"), ("up",)):
        assert "its own tools" in run(*words, "--data", tmp_path / "data", status=2, **named).stderr


def test_a_moment_before_every_back_up_is_refused_with_the_first_possible(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    run("backup", "key", tmp_path / "backup.key")
    named = {"backup_url": tmp_path / "store", "backup_key_file": tmp_path / "backup.key"}
    words = ("backup", "restore", "--data", tmp_path / "data", "--to", "1970-01-01T00:00:01Z")
    assert "ended at 1970-01-02T00:00:00" in run(*words, status=1, **named).stderr
    words = ("backup", "restore", "--data", tmp_path / "data", "--backup", "x")
    assert "no back-up x" in run(*words, status=1, **named).stderr


def test_a_restore_needs_the_master_key_unless_a_person_does_without_authentication(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    run("backup", "key", tmp_path / "backup.key")
    named = {"backup_url": tmp_path / "store", "backup_key_file": tmp_path / "backup.key"}
    words = ("backup", "restore", "--data", tmp_path / "data")
    said = run(*words, status=2, **named).stderr
    assert f"{tmp_path}/data/master.key is not there: bring it back" in said
    assert "is damaged, cut or no back-up" in run(*words, "--unauthenticated", status=1, **named).stderr
    assert "is damaged" in run(*words, status=1, **named, master_key="ab" * 32).stderr


def test_names_that_no_back_up_has_are_left_out_and_said(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    for name in ("notes", "7/wal/\x1b[2J", os.fsdecode(b"7/base/\xff")):
        FolderStore(tmp_path / "store").put(name, b"")
    told = run("backup", "list", "--json", backup_url=tmp_path / "store")
    assert len(json.loads(told.stdout)["backups"]) == len(STARTS)
    assert [line.rpartition(": ")[2] for line in told.stderr.splitlines()] == [
        "notes",
        r"7/base/\udcff",
        "7/wal/�[2J",
    ]


def test_doctor_judges_how_far_wal_is_behind_and_how_old_the_base_is() -> None:
    assert judge_shipping(2).word == "ok"
    assert judge_shipping(61).word == "wrong"
    assert judge_shipping(None).word == "wrong"
    assert judge_base(3600).word == "ok"
    assert judge_base(9 * 86_400).word == "hint"
    assert judge_base(None).word == "wrong"
