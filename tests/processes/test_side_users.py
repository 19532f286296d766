"""Which users the two sides run as when root runs `up`. The tests try what each user can reach."""

import os
import shutil
import stat
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.client import Client
from tests.crash.service import PROGRAM, Service, prepared_folder, service
from tests.crash.shop import run
from tests.folders import make_folder
from tests.forked_commands import ForkedCommand
from tests.processes.test_core_dumps import core_limits
from tests.waits import wait_until

from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.settings import Settings
from merchant_wallet.chains.keys.keystore import create_key
from merchant_wallet.postgres.privileges import (
    CAP_DAC_READ_SEARCH,
    CAP_NET_BIND_SERVICE,
    Account,
    become,
    can_keep,
    can_read,
)
from merchant_wallet.processes import side_users
from merchant_wallet.processes.side_users import (
    SideUser,
    can_web_read,
    choose_users,
    give_files,
    grant_capabilities,
    make_environment,
)

__all__ = ["prepared_folder", "service"]

IS_ROOT = os.geteuid() == 0
NOBODY = Account(65534, 65534)
PASSPHRASE = "correct horse battery staple"
as_root = pytest.mark.skipif(not IS_ROOT, reason="an ordinary user runs both sides as itself")


def _ids(pid: int, name: str) -> set[int]:
    """The numbers in one line of a process's status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {int(number) for line in lines if line.startswith(f"{name}:") for number in line.split()[1:]}


def _capabilities(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))


def _can(user: SideUser, *command: object) -> bool:
    """Whether a command succeeds as a user without any of root's rights."""
    drop = become(user.account, keep_search=False, groups=user.groups)
    quiet = subprocess.DEVNULL
    tried = subprocess.run(
        list(map(str, command)), preexec_fn=drop, cwd="/", stdout=quiet, stderr=quiet, check=False
    )
    return tried.returncode == 0


def _user_of(pid: int) -> SideUser:
    (uid,), (gid,) = _ids(pid, "Uid"), _ids(pid, "Gid")
    return SideUser(Account(uid, gid), tuple(_ids(pid, "Groups")))


def _answers(service: Service) -> bool:
    client = Client(service.url, service.app_key, service.secret)
    return bool(run(client.ask_once("getMerchantBalance"))["code"] == 200)


def _wait_for_checkpoints(service: Service) -> Path:
    folder = service.data / "checkpoints"
    wait_until(lambda: list(folder.glob("*.jsonl")), "the first checkpoint")
    return next(folder.glob("*.jsonl"))


@as_root
def test_both_sides_of_roots_service_are_users_of_their_own_until_its_folder_is_somebodys(
    service: Service,
) -> None:
    create_key(service.data / "keys", "ERC20", PASSPHRASE, cost=2)
    passphrase = service.data.parent / "passphrase"
    passphrase.write_text(PASSPHRASE)
    passphrase.chmod(0o600)
    service.start()
    both_have_no_right_of_roots(service)
    the_web_side_reaches_nothing_that_is_not_its_own(service, passphrase)
    the_worker_side_reaches_its_keys_and_nothing_of_roots(service, passphrase)
    commands_of_roots_work_beside_it(service)
    assert service.stop() == 0
    it_works_for_an_ordinary_user_once_the_folder_is_his(service)


def both_have_no_right_of_roots(service: Service) -> None:
    """Three users: of the web side, of the worker side, and PostgreSQL's."""
    web, worker = service.side("serve"), service.side("work")
    uids = [_ids(pid, "Uid") for pid in (web, worker, service.postmaster())]
    assert all(len(uid) == 1 for uid in uids)
    assert len(set.union(*uids)) == 3
    assert 0 not in set.union(*uids)
    assert [_capabilities(pid) for pid in (web, worker)] == [0, 0]
    for pid in (service.pid, web, worker):
        assert core_limits(pid) == ["0", "0"]
    assert _answers(service)


def the_web_side_reaches_nothing_that_is_not_its_own(service: Service, passphrase: Path) -> None:
    """Neither the worker's files nor root's. It may read checkpoints, and write nothing."""
    web, keys = _user_of(service.side("serve")), service.data / "keys"
    checkpoint = _wait_for_checkpoints(service)

    closed = [keys / "ERC20.json", keys / "signed.jsonl", passphrase, service.data / "checkpoint.key"]
    closed += [service.data / name for name in ("master.key", "postgres.password")]
    closed += [service.data / "postgres.worker.password"]
    for path in closed:
        assert path.exists()
        assert not _can(web, "cat", path), path
    assert _can(web, "cat", checkpoint)
    assert not _can(web, "test", "-w", checkpoint)
    assert not _can(web, "touch", checkpoint.with_name("1.jsonl"))
    assert not _can(web, "touch", service.data / "made")
    assert not _can(web, "kill", "-0", service.side("work"))


def the_worker_side_reaches_its_keys_and_nothing_of_roots(service: Service, passphrase: Path) -> None:
    """It can read its keystore, and otherwise no more of root's and PostgreSQL's files than the web side."""
    worker = _user_of(service.side("work"))
    assert _can(worker, "cat", service.data / "keys" / "signed.jsonl")
    assert _can(worker, "test", "-w", _wait_for_checkpoints(service))
    for path in (service.data / "postgres.password", service.data / "postgres" / "PG_VERSION", passphrase):
        assert not _can(worker, "cat", path), path


def commands_of_roots_work_beside_it(service: Service) -> None:
    """What they make is the worker's."""
    worker = _user_of(service.side("work"))
    create_key(service.data / "keys", "TRC20", PASSPHRASE, cost=2)
    assert _can(worker, "cat", service.data / "keys" / "TRC20.json")
    arguments = ("book", "verify", "--data", service.data)
    with ForkedCommand(*arguments, environment=service.environment()) as command:
        status, _, errors = command.finish()
    assert status == 0, errors


def it_works_for_an_ordinary_user_once_the_folder_is_his(service: Service) -> None:
    """Root runs it once more before. The data and all new files still belong to the user."""
    subprocess.run(["chown", "-R", "65534:65534", str(service.data.parent)], check=True)
    ordinary = become(NOBODY, keep_search=not can_read(NOBODY, [Path(PROGRAM)]))
    for before in (None, ordinary):
        service.start(before=before)
        assert {_user_of(service.side(side)).account.uid for side in ("serve", "work")} == {NOBODY.uid}
        assert _answers(service)
        assert service.stop() == 0


@as_root
def test_a_folder_closed_to_all_others_lends_the_web_side_no_right_to_read(service: Service) -> None:
    service.data.parent.chmod(0o700)
    service.start()
    web = service.side("serve")
    assert _capabilities(web) == 0
    assert _capabilities(service.side("work")) == 1 << CAP_DAC_READ_SEARCH
    settings = dict(
        line.split("=", 1) for line in Path(f"/proc/{web}/environ").read_text().split("\0") if "=" in line
    )
    lent, archive = (
        Path(settings[f"WALLET_{name}_DIR"].replace("self", str(web))) for name in ("CHECKPOINT", "ARCHIVE")
    )
    _wait_for_checkpoints(service)
    assert list(lent.glob("*.jsonl"))
    assert archive.samefile(service.data / "archive")
    assert _answers(service)
    assert Path(f"/proc/{service.postmaster()}").stat().st_uid != 0
    assert stat.S_IMODE(service.data.parent.stat().st_mode) == 0o700
    assert service.stop() == 0


@pytest.fixture
def folder() -> Iterator[Path]:
    """A data folder with a keystore and checkpoints that root made."""
    parent = make_folder("merchant-wallet-crash-")
    data = parent / "data"
    create_key(data / "keys", "ERC20", PASSPHRASE, cost=2)
    (data / "checkpoints" / "evidence").mkdir(parents=True)
    (data / "checkpoints" / "1001.jsonl").touch(mode=0o600)
    yield data
    shutil.rmtree(parent)


def _owner(path: Path) -> tuple[int, int, int]:
    found = path.lstat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


@as_root
def test_files_are_handed_over_and_nothing_that_was_linked_among_them(folder: Path) -> None:
    outside = folder.parent / "outside"
    outside.touch(mode=0o600)
    os.link(outside, folder / "checkpoints" / "linked")
    (folder / "checkpoints" / "pointed").symlink_to(outside)
    settings = Settings(data=folder)
    users = choose_users(settings)
    assert users is not None

    give_files(settings, users)

    worker, group = users.worker.account, users.group
    assert _owner(folder / "keys") == (worker.uid, worker.gid, 0o700)
    assert _owner(folder / "keys" / "signed.jsonl") == (worker.uid, worker.gid, 0o600)
    assert _owner(folder / "checkpoints") == (worker.uid, group, 0o2750)
    assert _owner(folder / "checkpoints" / "evidence") == (worker.uid, group, 0o2750)
    assert _owner(folder / "checkpoints" / "1001.jsonl") == (worker.uid, group, 0o640)
    assert _owner(outside) == (0, 0, 0o600)
    assert _owner(folder)[0] == 0


@as_root
def test_an_ordinary_users_folder_stays_that_users(folder: Path) -> None:
    os.chown(folder, NOBODY.uid, NOBODY.gid)
    (folder / "master.key").touch(mode=0o600)
    settings = Settings(data=folder)
    users = choose_users(settings)
    assert users is not None
    assert (users.web.account, users.worker.account) == (NOBODY, NOBODY)

    give_files(settings, users)

    for path in (folder / "master.key", folder / "keys" / "ERC20.json", folder / "checkpoints"):
        assert _owner(path)[:2] == (NOBODY.uid, NOBODY.gid), path


@as_root
def test_users_are_what_the_settings_name_else_numbers_that_nobody_has(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = choose_users(Settings(data=folder, web_user="nobody", worker_user="61000"))
    assert users is not None
    assert (users.web.account.uid, users.worker.account) == (NOBODY.uid, Account(61000, 61000))
    assert users.worker.groups == (users.web.account.gid,)
    with pytest.raises(ConfigError, match="There is no user no_such_user"):
        choose_users(Settings(data=folder, web_user="no_such_user"))

    first = side_users.FIRST_ID + 2 * (zlib.crc32(os.fsencode(folder.resolve())) % side_users.PAIRS)
    derived = choose_users(Settings(data=folder))
    assert derived is not None
    assert [derived.web.account.uid, derived.worker.account.uid] == [first, first + 1]
    monkeypatch.setattr(side_users, "_is_listed", lambda number: number == first + 1)
    moved = choose_users(Settings(data=folder))
    assert moved is not None
    assert not {moved.web.account.uid, moved.worker.account.uid} & {first, first + 1}


def test_an_ordinary_user_runs_both_sides_as_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert choose_users(Settings(data=folder)) is None
    with pytest.raises(ConfigError, match="root alone"):
        choose_users(Settings(data=folder, web_user="nobody"))


@as_root
def test_a_low_port_is_listened_on_with_one_right(folder: Path) -> None:
    settings = Settings(data=folder, port=443)
    users = choose_users(settings)
    assert users is not None
    lent = grant_capabilities(settings, users)
    assert (lent.web.keep_bind, lent.worker.keep_bind) == (can_keep(CAP_NET_BIND_SERVICE), False)
    if lent.web.keep_bind:
        listen = [sys.executable, "-c", "import socket; socket.socket().bind(('127.0.0.1', 999))"]
        assert subprocess.run(listen, preexec_fn=lent.web.drop(), cwd="/", check=False).returncode == 0


@as_root
def test_a_side_that_needs_what_it_cannot_read_is_refused_with_a_way_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_users, "can_keep_search", lambda: False)
    folder.parent.chmod(0o700)
    settings = Settings(data=folder)
    users = choose_users(settings)
    assert users is not None
    give_files(settings, users)
    with pytest.raises(ConfigError, match=r"chmod o\+x"):
        grant_capabilities(settings, users)


@as_root
@pytest.mark.parametrize("error", [subprocess.SubprocessError("no"), PermissionError("no")])
def test_a_user_that_root_can_not_become_is_named_with_a_way_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    settings = Settings(data=folder)
    users = choose_users(settings)
    assert users is not None

    def fail(*_: object) -> bool:
        raise error

    monkeypatch.setattr(side_users, "can_read", fail)
    with pytest.raises(ConfigError, match="root cannot become user"):
        grant_capabilities(settings, users)
    with pytest.raises(ConfigError, match="root cannot become user"):
        can_web_read(settings.checkpoint_folder, users)


def test_each_side_is_told_its_secrets_and_no_others(folder: Path) -> None:
    passphrase, config = folder.parent / "passphrase", folder.parent / "settings.toml"
    for path, text in (
        (passphrase, PASSPHRASE + "\n"),
        (config, 'queue_limit = 7\nerc20_rpc = "http://node"\n'),
    ):
        path.touch(mode=0o600)
        path.write_text(text)
    settings = Settings(
        data=folder,
        sandbox=False,
        master_key=bytes(32),
        checkpoint_key=bytes([7]) * 32,
        keystore_passphrase_file=passphrase,
    )
    given = {
        "WALLET_CONFIG": str(config),
        "WALLET_QUEUE_LIMIT": "9",
        "WALLET_KEYSTORE_PASSPHRASE_FILE": str(passphrase),
        "WALLET_WEB_USER": "nobody",
        "PATH": "/bin",
    }

    web, worker = (make_environment(settings, given, side) for side in ("serve", "work"))

    common = {
        "HOME": "/nonexistent",
        "PATH": "/bin",
        "WALLET_MASTER_KEY": "00" * 32,
        "WALLET_CHECKPOINT_DIR": str(folder / "checkpoints"),
        "WALLET_ARCHIVE_DIR": str(folder / "archive"),
        "WALLET_QUEUE_LIMIT": "9",
        "WALLET_ERC20_RPC": "http://node",
    }
    # `up` also keeps back what only workers need.
    assert web == {**common, "WALLET_KEYSTORE_PASSPHRASE_FILE": str(passphrase)}
    assert worker == {
        **common,
        "WALLET_CHECKPOINT_KEY": "07" * 32,
        "WALLET_KEYSTORE_PASSPHRASE": PASSPHRASE,
        "WALLET_KEYSTORE_PASSPHRASE_FILE": "",
    }
