"""`up`, `serve` and `work` on an existing database."""

import signal
import stat
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.conftest import Wallet
from tests.forked_commands import ForkedCommand
from tests.roles import as_web, as_worker
from tests.waits import wait_until

from merchant_wallet.base.settings import Settings
from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE
from merchant_wallet.processes.runtime_file import RUNTIME_FILE, write_runtime_file

WAIT_S = 60


def begin(wallet: Wallet, side: str) -> ForkedCommand:
    """Start a side with its own role, `up` with the owner's."""
    own = {"serve": as_web, "work": as_worker}
    url = own.get(side, str)(wallet.variables["WALLET_DATABASE_URL"])
    return wallet.begin(side, WALLET_DATABASE_URL=url, WALLET_PORT="0")


@contextmanager
def running(wallet: Wallet, side: str) -> Iterator[ForkedCommand]:
    """The same. At the end it is told to stop, and does."""
    with begin(wallet, side) as command:
        yield command
        command.send(signal.SIGTERM)
        assert command.wait() == 0, command.read_errors()


def test_the_web_side_alone_answers_until_it_is_stopped(wallet: Wallet) -> None:
    with running(wallet, "serve") as serving:
        address = serving.read_line().removeprefix("ready: ")
        assert serving.read_line() == "mode: sandbox, no real money moves"
        request = urllib.request.Request(f"{address}/merchant/getMerchantBalance", b"{}", method="POST")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            assert b"40001" in answer.read()


@pytest.mark.parametrize("command", ["up", "serve", "work", "migrate", "doctor"])
def test_nothing_starts_on_a_database_from_outside_until_the_mode_is_said(
    wallet: Wallet, command: str
) -> None:
    del wallet.variables["WALLET_SANDBOX"]
    ended = wallet.start(command)
    assert ended.returncode != 0
    assert "WALLET_SANDBOX must say what it is for" in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr


def test_no_merchant_is_opened_in_the_other_mode_than_those_there_are(wallet: Wallet) -> None:
    wallet.open_merchant()
    wallet.variables |= {"WALLET_SANDBOX": "false", "WALLET_ERC20_RPC": "http://127.0.0.1:1"}
    assert "were created in the sandbox" in wallet.refuse("merchant", "create", "Second", status=2)


def test_commands_follow_the_mode_of_the_up_that_runs_in_the_folder(wallet: Wallet) -> None:
    write_runtime_file(Settings(data=wallet.folder, database_url=wallet.url, sandbox=False))
    wallet.variables = {"WALLET_DATA": str(wallet.folder)}
    configuration = wallet.ask("doctor", status=1)["checks"][1]
    assert configuration["text"] == "WALLET_SANDBOX is false, and no chain has a node"


@pytest.mark.new_database
def test_the_workers_alone_prepare_what_a_doctor_looks_for(wallet: Wallet) -> None:
    wallet.open_merchant()
    wallet.run("doctor", status=1)
    with running(wallet, "work") as working:
        assert working.read_line() == "ready: working"
        assert working.read_line() == "mode: sandbox, no real money moves"
        assert wallet.ask("doctor")["ok"] is True


def test_commands_reach_an_up_that_was_told_its_database_by_the_folder_alone(
    wallet: Wallet, tmp_path: Path
) -> None:
    wallet.variables["WALLET_CHECKPOINT_DIR"] = str(tmp_path / "apart")
    note = wallet.folder / RUNTIME_FILE
    with running(wallet, "up") as up:
        assert up.read_line() == "operator: admin"
        assert up.read_line().startswith("password: ")
        assert up.read_line().endswith("/console")
        assert up.read_line().startswith("ready: ")
        assert up.read_line() == "mode: sandbox, no real money moves"
        assert stat.S_IMODE(note.stat().st_mode) == 0o600
        told = wallet.variables
        wallet.variables = {}
        assert wallet.ask("merchant", "create", "Shop", "--data", wallet.folder)["merchantId"] == 1001
        assert wallet.ask("doctor", "--data", wallet.folder)["ok"] is True
        wallet.variables = told
    assert not note.exists()


@pytest.mark.parametrize("side", ["serve", "work"])
def test_a_side_waits_for_its_database_until_it_is_told_to_stop(wallet: Wallet, side: str) -> None:
    wallet.variables["WALLET_DATABASE_URL"] = "postgresql://wallet@127.0.0.1:1/wallet"
    with running(wallet, side) as waiting:
        wait_until(lambda: "the database is not there yet" in waiting.read_errors(), waiting.read_errors)
        assert waiting.is_running


@pytest.mark.parametrize("side", ["serve", "work"])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("delete from schema_migration where version = (select max(version) from schema_migration)", "older"),
        (
            "insert into schema_migration select max(version) + 1, 'n', 'c', 1, 'contract'"
            " from schema_migration",
            "newer",
        ),
    ],
)
def test_a_side_refuses_another_schema_than_its_own(
    wallet: Wallet, side: str, change: str, sentence: str
) -> None:
    wallet.tamper(change)
    ended = wallet.start(side)
    assert ended.returncode == 2
    assert f"schema is {sentence} than this program" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "ready" not in ended.stdout


@pytest.mark.parametrize(
    "loss", ["alter table rate rename column usdt_kfb_e8 to rate", "drop table rate cascade"]
)
def test_a_command_explains_a_schema_that_is_not_its_own(wallet: Wallet, loss: str) -> None:
    wallet.tamper(loss)
    assert "run `merchant-wallet migrate`" in wallet.refuse("rates", "list", status=2)


def test_migrate_grants_to_the_roles_that_it_is_told_and_to_the_same_ones_later(wallet: Wallet) -> None:
    wallet.tamper("delete from side_role")
    wallet.tamper(f"revoke all on all tables in schema public from {WEB_ROLE}, {WORKER_ROLE}")
    assert wallet.ask("migrate") == {"applied": [], "roles": {}}

    named = ("--web-role", WEB_ROLE, "--worker-role", WORKER_ROLE)
    granted = {"web": WEB_ROLE, "worker": WORKER_ROLE}
    assert wallet.ask("migrate", *named) == {"applied": [], "roles": granted}
    assert wallet.ask("migrate") == {"applied": [], "roles": granted}

    assert wallet.read("select has_table_privilege(%(role)s, 'entry', 'insert')", role=WEB_ROLE) == [(True,)]
    assert "There is no database role missing" in wallet.refuse("migrate", "--web-role", "missing", status=2)


def test_a_side_that_is_asked_to_migrate_is_told_who_can(wallet: Wallet) -> None:
    wallet.variables["WALLET_DATABASE_URL"] = as_web(wallet.url)
    told = wallet.refuse("migrate", status=2)
    assert "The database role may not do this" in told
    assert "owns the tables" in told
