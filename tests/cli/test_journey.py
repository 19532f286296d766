"""The command line as an operator uses it, beside a real `up`."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import COMMAND, clean_environment
from tests.forked_commands import ForkedCommand

READY = "ready: "


class Terminal:
    """A terminal that adds `--data` to every command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *arguments: object, status: int = 0) -> "subprocess.CompletedProcess[str]":
        with ForkedCommand(*arguments, "--data", self.folder, environment=clean_environment()) as command:
            ended = subprocess.CompletedProcess(list(map(str, arguments)), *command.finish())
        assert ended.returncode == status, ended.stdout + ended.stderr
        return ended

    def ask(self, *arguments: object, status: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", status=status).stdout)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """Beside a running service, which is stopped at the end."""
    folder = tmp_path / "wallet folder"
    with (tmp_path / "up.log").open("wb") as log:
        up = subprocess.Popen(
            [str(COMMAND), "up", "--data", str(folder), "--port", "0"],
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert up.stdout is not None
    with up.stdout:
        try:
            said = [up.stdout.readline() for _ in ("operator", "password", "console", "ready")]
            assert said[-1].startswith(f"{READY}http://127.0.0.1:"), (tmp_path / "up.log").read_text()
            yield Terminal(folder)
        finally:
            up.send_signal(signal.SIGTERM)
            status = up.wait(60)
    assert status == 0


def test_an_operator_opens_funds_prices_and_audits_a_merchant(terminal: Terminal) -> None:
    assert terminal.ask("doctor")["ok"] is True
    made = terminal.ask("merchant", "create", "Shop")
    terminal.run("merchant", "set", made["appKey"], "--transfer-fee-rate", "1%")
    terminal.run("rates", "set", "USDT:KFB", "7.10")
    credit = terminal.run("book", "credit", "Shop", "USDT", "1000", "--reason", "deposit", "--json")
    assert json.loads(credit.stdout)["balance"] == "1000"
    refused = terminal.run("book", "debit", "Shop", "USDT", "1000.01", "--reason", "too much", status=1)
    assert refused.stdout == ""
    assert "more than the available balance" in refused.stderr
    statement = terminal.run("book", "statement", "Shop", "--account", "merchant:USDT").stdout
    assert statement.splitlines()[1].endswith("USDT,1000,1000")
    busy = terminal.run("up", "--port", "0", status=2)
    assert "in use by process" in busy.stderr
    assert "ready" not in busy.stdout
    assert terminal.ask("book", "verify")["ok"] is True
    log = (terminal.folder.parent / "up.log").read_text()
    assert "working" in log
    assert made["appSecret"] not in log
    assert made["callbackSecret"] not in log
    assert os.stat(terminal.folder / "master.key").st_mode & 0o777 == 0o600
