"""The program as a whole: its commands, their help, and how it says that it can't go on."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.cli.conftest import COMMAND, Wallet, clean_environment
from typer.testing import CliRunner

from merchant_wallet.cli.program import app

COMMANDS = (
    "up",
    "serve",
    "work",
    "migrate",
    "sign",
    "doctor",
    "merchant create",
    "merchant list",
    "merchant show",
    "merchant set",
    "merchant suspend",
    "merchant resume",
    "merchant rotate-secret",
    "merchant retire-secret",
    "sub-users set",
    "sub-users list",
    "sub-users show",
    "rates set",
    "rates list",
    "rates pause",
    "rates resume",
    "book credit",
    "book debit",
    "book show",
    "book statement",
    "book verify",
    "fees list",
    "fees withdraw",
    "withdrawals list",
    "withdrawals show",
    "withdrawals approve",
    "withdrawals cancel",
)
LISTS = ("merchant list", "rates list", "fees list", "withdrawals list", "book verify", "doctor", "migrate")
HEAVY = ("psycopg", "rich", "structlog", "starlette", "coincurve", "cryptography", "uvloop")


def names_of(command: Any, prefix: str = "") -> list[str]:
    children = getattr(command, "commands", None)
    if children is None:
        return [prefix.strip()]
    return [name for key, child in children.items() for name in names_of(child, f"{prefix} {key}")]


def test_the_program_has_exactly_the_commands_that_are_promised() -> None:
    assert sorted(names_of(typer.main.get_command(app))) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--help"])
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert result.stdout.count(f"merchant-wallet {command}") >= 1
    assert ("--data" in result.stdout) == (command != "sign")
    assert ("--json" in result.stdout) == (command not in ("up", "serve", "work"))


def test_the_help_loads_nothing_that_it_does_not_need() -> None:
    look = f"import sys, merchant_wallet.cli.program; print(set({HEAVY!r}) & set(sys.modules))"
    seen = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "set()"


@pytest.mark.parametrize("command", LISTS)
def test_with_json_there_is_one_document_even_when_there_is_nothing_to_list(
    wallet: Wallet, command: str
) -> None:
    result = wallet.run(*command.split(), "--json", status=1 if command == "doctor" else 0)
    assert isinstance(json.loads(result.stdout), dict)
    assert result.stdout.count("\n") == 1


def test_where_nothing_runs_the_command_says_how_to_start_it(tmp_path: Path) -> None:
    folder = tmp_path / "my wallet"
    ended = subprocess.run(
        [COMMAND, "merchant", "list", "--data", str(folder)],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"merchant-wallet up --data '{folder}'" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not folder.exists()


def test_a_setting_that_does_not_exist_is_named(wallet: Wallet) -> None:
    wallet.variables["WALLET_PORTT"] = "1"
    assert "Did you mean WALLET_PORT?" in wallet.refuse("merchant", "list", status=2)


def test_a_database_that_is_away_is_told_in_one_sentence(wallet: Wallet) -> None:
    wallet.variables["WALLET_DATABASE_URL"] = "postgresql://wallet:hidden@127.0.0.1:1/wallet"
    told = wallet.refuse("merchant", "list", status=2)
    assert told.startswith("The database can't be reached")
    assert "hidden" not in told


def test_a_database_without_tables_is_told_to_be_migrated(empty_database_url: str, wallet: Wallet) -> None:
    wallet.variables["WALLET_DATABASE_URL"] = empty_database_url
    assert "merchant-wallet migrate" in wallet.refuse("merchant", "list", status=2)
    applied = wallet.ask("migrate")["applied"]
    assert applied[0] == "0001_books"
    assert wallet.ask("merchant", "list") == {"merchants": []}
    assert wallet.ask("migrate") == {"applied": []}


def test_a_service_that_could_not_pay_is_not_started(wallet: Wallet) -> None:
    assert "WALLET_SANDBOX must be true" in wallet.refuse("up", "--no-sandbox", status=2)


def test_a_fault_of_ours_is_not_dressed_up_as_a_sentence(wallet: Wallet) -> None:
    wallet.tamper("alter table merchant drop column created_ms")
    result = CliRunner().invoke(app, ["merchant", "list"], env=wallet.variables)
    assert type(result.exception).__name__ == "UndefinedColumn"
