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
from tests.rows import each_row
from typer.testing import CliRunner

from merchant_wallet.base.config import load_settings
from merchant_wallet.base.settings import Settings
from merchant_wallet.cli.backup_checks import find_newest, judge_base, judge_fault, judge_shipping
from merchant_wallet.cli.program import app
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.observability.backup_metrics import NOTHING
from merchant_wallet.postgres.backups.base import Manifest
from merchant_wallet.postgres.backups.encryption import SIGNING_KEY, read_key_file
from merchant_wallet.postgres.backups.names import SEGMENT_BYTES, Completed, Stored, WalPart
from merchant_wallet.postgres.backups.stores import FolderStore
from merchant_wallet.processes.wal_shipping import find_authenticating_key

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


def sign(folder: Path, *numbers: int) -> dict[str, Any]:
    """Sign some base back-ups of a store. Returns the settings that lead to the keys."""
    store, file = FolderStore(folder), folder.parent / "backup.key"
    run("backup", "key", file)
    keys = read_key_file(file).with_signing_key(Keyring(b"\xab" * 32).derive(SIGNING_KEY))
    for number in numbers:
        objects = store.list_objects(f"7/base/2026010{number}T000000Z")
        [complete] = [found.name for found in objects if "complete" in found.name]
        store.put(complete, keys.seal(complete, msgspec.json.encode(Manifest("", 1))))
    return {"backup_url": folder, "backup_key_file": file, "master_key": "ab" * 32}


def load(named: dict[str, Any]) -> Settings:
    """The settings of a program with these variables."""
    return load_settings({f"WALLET_{name.upper()}": str(value) for name, value in named.items()})


def test_pruning_with_the_keys_counts_only_back_ups_that_are_authentic(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    named = sign(tmp_path / "store", *STARTS[:2])
    told = run("backup", "prune", "--keep", "1", "--json", **named)
    assert json.loads(told.stdout) == {"kept": ["20260103T000000Z"], "removedObjects": 2}
    assert "Not counted: 7/base/20260104T000000Z/" in told.stderr
    assert "--unauthenticated" not in told.stderr


@each_row(
    ("signed", "keep", "said"),
    [((4,), 2, "1 back-up can be counted, and 2 are to be kept"), ((), 1, "0 back-ups can be counted")],
)
def test_pruning_removes_nothing_while_fewer_than_it_keeps_are_authentic(
    tmp_path: Path, signed: tuple[int, ...], keep: int, said: str
) -> None:
    # After the upgrade that brought signatures, or with another master key.
    store = tmp_path / f"store{keep}" / "store"
    store.parent.mkdir()
    fill(store)
    before = FolderStore(store).list_objects()
    named = sign(store, *signed)
    told = run("backup", "prune", "--keep", keep, "--json", **named)
    assert f"Nothing is removed: {said}" in told.stderr
    assert json.loads(told.stdout)["removedObjects"] == 0
    assert len(json.loads(told.stdout)["kept"]) == len(STARTS)
    assert len(FolderStore(store).list_objects()) == len(before)


def test_pruning_without_the_keys_refuses_a_back_up_that_is_dated_in_the_future(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    for moment, ended_ms in (("99990101T000000Z", 1), ("20260105T000000Z", 253_402_300_799_999)):
        name = f"7/base/{moment}/{Completed(1, 1, 2, ended_ms).name}"
        for each in (f"7/base/{moment}/data.age", name):
            FolderStore(tmp_path / "store").put(each, b"")
        told = run("backup", "prune", "--keep", "1", status=1, backup_url=tmp_path / "store")
        assert f"{moment} is dated in the future" in told.stderr
        FolderStore(tmp_path / "store").delete([f"7/base/{moment}/data.age", name])
    assert len(FolderStore(tmp_path / "store").list_objects()) == 2 * len(STARTS)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another account")
def test_an_account_that_can_not_read_the_keys_counts_names(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    named = sign(tmp_path / "store", 3)
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    for settings in (named, {**named, "master_key": "", "data": data}):
        loaded = load({name: value for name, value in settings.items() if value})
        os.seteuid(65_534)
        try:
            assert find_authenticating_key(loaded) is None
        finally:
            os.seteuid(0)


def test_doctor_judges_the_newest_authentic_back_up_and_names_later_ones(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    named = sign(tmp_path / "store", 1, 3)
    # Its name ends after all others.
    forged = f"7/base/20260104T000000Z/{Completed(1, 1, 2, 253_402_300_799_999).name}"
    store = FolderStore(tmp_path / "store")
    store.delete([found.name for found in store.list_objects("7/base/20260104T000000Z")])
    for name in ("7/base/20260104T000000Z/data.age", forged):
        store.put(name, b"")
    newest, [fault] = find_newest(load(named), "7")
    assert newest is not None
    assert newest[0].name == "20260103T000000Z"
    assert fault.startswith(forged)
    assert "--unauthenticated" not in fault
    assert "remove it from the store" in str(judge_fault(fault).advice)
    # Without the keys names count. That it is dated in the future is found all the same.
    del named["master_key"]
    named["data"] = tmp_path / "data"
    newest, faults = find_newest(load(named), "7")
    assert newest is not None
    assert (newest[0].name, faults) == ("20260104T000000Z", ())
    assert judge_base(-1).word == "wrong"


def test_doctor_counts_no_back_up_of_another_database_in_the_same_store(tmp_path: Path) -> None:
    # As after `postgres upgrade`, which begins a new database.
    fill(tmp_path / "store", "7")
    named = {"backup_url": tmp_path / "store", "data": tmp_path / "data"}
    assert find_newest(load(named), "8") == (None, ())
    assert find_newest(load(named), "7")[0] is not None


def test_a_store_of_several_databases_asks_which(tmp_path: Path) -> None:
    fill(tmp_path / "store", "7")
    fill(tmp_path / "store", "8")
    said = run("backup", "list", status=1, backup_url=tmp_path / "store").stderr
    assert "--system: 7 (newest 20260104T000000Z, 1 MB, restorable to 1970-01-05 00:00:00.000Z); 8 (" in said
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
    assert "There is no wallet in the folder" in run("backup", "create", *data, status=2, **named).stderr
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


def make_hole(folder: Path) -> None:
    """Segments after the newest base back-up, of which the second is missing."""
    store = FolderStore(folder)
    for number in (4, 6, 7):
        part = WalPart(1, number * SEGMENT_BYTES, (number + 1) * SEGMENT_BYTES, number * 100_000_000)
        store.put(f"7/wal/{part.name}", b"")


def test_a_hole_is_named_by_list_with_what_lies_behind_it(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    make_hole(tmp_path / "store")
    told = run("backup", "list", "--json", backup_url=tmp_path / "store")
    newest = json.loads(told.stdout)["backups"][-1]
    assert newest["restorableToMs"] == 400_000_000
    assert newest["hole"] == {
        "timeline": 1,
        "position": "0/5000000",
        "laterObjects": 2,
        "laterToMs": 700_000_000,
    }
    assert told.stderr.splitlines()[-1] == (
        "From 20260104T000000Z: WAL is missing from 0/5000000 of timeline 1 on (segment "
        "000000010000000000000005), and 2 later objects, up to 1970-01-09 02:26:40.000Z can't be restored."
    )


def test_a_restore_up_to_a_hole_is_asked_for_and_one_behind_it_is_refused(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    make_hole(tmp_path / "store")
    named = sign(tmp_path / "store", *STARTS)
    words = ("backup", "restore", "--data", tmp_path / "data")
    said = run(*words, status=1, **named).stderr
    assert "What can be restored ends at 1970-01-05 15:06:40.000Z" in said
    assert "give --up-to-hole. Nothing was done" in said
    assert not (tmp_path / "data").exists()
    # It goes on to the base back-up, which is none here.
    assert "has no age header" in run(*words, "--up-to-hole", status=1, **named).stderr
    said = run(*words, "--to", "1970-01-06T00:00:00Z", status=1, **named).stderr
    assert "no moment after 1970-01-05 15:06:40.000Z can be restored: WAL is missing" in said


def test_a_bound_of_what_may_be_missing_is_seconds_or_off(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    said = run("backup", "verify", "--max-missing", "much", status=2, backup_url=tmp_path / "store").stderr
    assert "takes seconds, or off" in said


def test_names_that_no_back_up_has_are_left_out_and_said(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    for name in ("notes", "7/wal/\x1b[2J", os.fsdecode(b"7/base/\xff")):
        FolderStore(tmp_path / "store").put(name, b"")
    told = run("backup", "list", "--json", backup_url=tmp_path / "store")
    assert len(json.loads(told.stdout)["backups"]) == len(STARTS)
    assert [line.rpartition(": ")[2] for line in told.stderr.splitlines()] == [
        "notes",
        r"7/base/\udcff",
        "7/wal/<U+001B>[2J",
    ]


def test_doctor_judges_how_far_wal_is_behind_and_how_old_the_base_is() -> None:
    at_ms = 100_000
    assert judge_shipping(Stored(98_000, 98_000, 1), at_ms).word == "ok"
    assert judge_shipping(Stored(39_000, 39_000, 1), at_ms).word == "wrong"
    # WAL is stored every two seconds, and some of it is missing, or it has no base back-up.
    missing = judge_shipping(Stored(98_000, 80_000, 1), at_ms)
    assert (missing.word, "a lost disk would lose 20 s" in missing.text) == ("wrong", True)
    assert judge_shipping(Stored(98_000, 0, 0), at_ms).word == "wrong"
    assert judge_shipping(NOTHING, at_ms).word == "wrong"
    assert judge_base(3600).word == "ok"
    assert judge_base(9 * 86_400).word == "hint"
    assert judge_base(None).word == "wrong"
