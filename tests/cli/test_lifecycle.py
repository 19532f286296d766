"""`up`, `serve` and `work` on an existing database."""

import signal
import stat
import subprocess
import urllib.request
from pathlib import Path

import pytest
from tests.cli.conftest import COMMAND, Wallet, clean_environment
from tests.roles import as_web, as_worker

from merchant_wallet.base.settings import Settings
from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE
from merchant_wallet.processes.runtime_file import RUNTIME_FILE, write_runtime_file

WAIT_S = 60


def start(wallet: Wallet, side: str, stderr: int = subprocess.DEVNULL) -> "subprocess.Popen[str]":
    """Start a side with its own role, `up` with the owner's."""
    own = {"serve": as_web, "work": as_worker}
    url = own.get(side, str)(wallet.variables["WALLET_DATABASE_URL"])
    return subprocess.Popen(
        [str(COMMAND), side],
        env={**clean_environment(), **wallet.variables, "WALLET_DATABASE_URL": url, "WALLET_PORT": "0"},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


def first_line(running: "subprocess.Popen[str]") -> str:
    assert running.stdout is not None
    return running.stdout.readline().strip()


def stop(running: "subprocess.Popen[str]") -> int:
    running.send_signal(signal.SIGTERM)
    status = running.wait(WAIT_S)
    assert running.stdout is not None
    running.stdout.close()
    return status


def test_the_web_side_alone_answers_until_it_is_stopped(wallet: Wallet) -> None:
    serving = start(wallet, "serve")
    try:
        address = first_line(serving).removeprefix("ready: ")
        assert first_line(serving) == "mode: sandbox, no real money moves"
        request = urllib.request.Request(f"{address}/merchant/getMerchantBalance", b"{}", method="POST")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            assert b"40001" in answer.read()
    finally:
        status = stop(serving)
    assert status == 0


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
    working = start(wallet, "work")
    try:
        assert first_line(working) == "ready: working"
        assert first_line(working) == "mode: sandbox, no real money moves"
        assert wallet.ask("doctor")["ok"] is True
    finally:
        status = stop(working)
    assert status == 0


def test_commands_reach_an_up_that_was_told_its_database_by_the_folder_alone(
    wallet: Wallet, tmp_path: Path
) -> None:
    wallet.variables["WALLET_CHECKPOINT_DIR"] = str(tmp_path / "apart")
    running = start(wallet, "up")
    note = wallet.folder / RUNTIME_FILE
    try:
        assert first_line(running) == "operator: admin"
        assert first_line(running).startswith("password: ")
        assert first_line(running).endswith("/console")
        assert first_line(running).startswith("ready: ")
        assert first_line(running) == "mode: sandbox, no real money moves"
        assert stat.S_IMODE(note.stat().st_mode) == 0o600
        told = wallet.variables
        wallet.variables = {}
        assert wallet.ask("merchant", "create", "Shop", "--data", wallet.folder)["merchantId"] == 1001
        assert wallet.ask("doctor", "--data", wallet.folder)["ok"] is True
        wallet.variables = told
    finally:
        status = stop(running)
    assert status == 0
    assert not note.exists()


@pytest.mark.parametrize("side", ["serve", "work"])
def test_a_side_waits_for_its_database_until_it_is_told_to_stop(wallet: Wallet, side: str) -> None:
    wallet.variables["WALLET_DATABASE_URL"] = "postgresql://wallet@127.0.0.1:1/wallet"
    waiting = start(wallet, side, stderr=subprocess.PIPE)
    assert waiting.stderr is not None
    assert "the database is not there yet" in waiting.stderr.readline()
    assert waiting.poll() is None
    waiting.stderr.close()
    assert stop(waiting) == 0


@pytest.mark.parametrize("side", ["serve", "work"])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("delete from schema_migration where version = (select max(version) from schema_migration)", "older"),
        ("insert into schema_migration select max(version) + 1, 'n', 'c', 1 from schema_migration", "newer"),
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
