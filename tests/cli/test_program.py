"""The whole program: its commands, their help, and its error messages."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.cli.conftest import Wallet, clean_environment
from tests.forked_commands import ForkedCommand
from tests.rows import each_row
from typer.testing import CliRunner

from merchant_wallet.base.settings import Settings
from merchant_wallet.cli.command_table import ROWS
from merchant_wallet.cli.failures import explain
from merchant_wallet.cli.program import app, load_all_commands
from merchant_wallet.cli.session import read_running
from merchant_wallet.merchants import store
from merchant_wallet.processes.runtime_file import remove_runtime_file, write_runtime_file

COMMANDS = (
    "up",
    "serve",
    "work",
    "migrate",
    "sign",
    "call",
    "listen",
    "trigger",
    "verify",
    "explain",
    "doctor",
    "find",
    "settings",
    "signer",
    "keys create",
    "keys import",
    "keys derive",
    "keys release",
    "keys show-addresses",
    "merchant create",
    "merchant list",
    "merchant move",
    "merchant show",
    "merchant set",
    "merchant look",
    "merchant suspend",
    "merchant payout-rules",
    "merchant resume",
    "merchant rotate-secret",
    "merchant keys",
    "merchant add-key",
    "merchant set-key",
    "merchant roll-key",
    "merchant revoke-key",
    "merchant retire-secret",
    "cell add",
    "cell list",
    "cell drain",
    "cell follow",
    "cell move",
    "sub-users set",
    "sub-users list",
    "sub-users show",
    "sub-users reset-pin",
    "proposals list",
    "proposals show",
    "proposals accept",
    "proposals refuse",
    "proposals withdraw",
    "rates set",
    "rates remove",
    "rates list",
    "rates pause",
    "rates resume",
    "book accept-rollback",
    "book credit",
    "book debit",
    "book entry",
    "book show",
    "book statement",
    "book verify",
    "fees list",
    "fees withdraw",
    "withdrawals list",
    "withdrawals show",
    "withdrawals approve",
    "withdrawals cancel",
    "withdrawals refund",
    "withdrawals resume",
    "deposits list",
    "deposits show",
    "deposits chains",
    "deposits rescan",
    "deposits release",
    "deposits drop",
    "deposits simulate",
    "screening list",
    "screening show",
    "screening release",
    "screening refuse",
    "screening ask-again",
    "screening check-list",
    "sweep plan",
    "sweep run",
    "sweep end",
    "sweep list",
    "callbacks list",
    "callbacks show",
    "callbacks resend",
    "callbacks pause",
    "callbacks resume",
    "wallets list",
    "wallets stop",
    "wallets resume",
    "wallets take",
    "cold show",
    "cold list",
    "rescue end",
    "rescue list",
    "rescue look",
    "rescue propose",
    "rescue show",
    "cold wallet",
    "cold limits",
    "cold move",
    "cold unsigned",
    "cold signed",
    "cold drop",
    "reconcile",
    "reconcile record",
    "reconcile treasury",
    "inbox",
    "notifications list",
    "notifications test",
    "operator create",
    "operator list",
    "operator show",
    "operator reset",
    "operator disable",
    "operator enable",
    "operator set-role",
    "operator sessions",
    "operator end-sessions",
    "operator seen-failures",
    "backup create",
    "backup key",
    "backup list",
    "backup prune",
    "backup restore",
    "backup verify",
    "postgres upgrade",
    "audit list",
    "audit verify",
    "finance report",
    "finance simulate",
    "finance solvency",
    "finance months",
    "finance prepare",
    "finance close",
    "finance restate",
    "finance verify",
    "finance statement",
    "finance invoices",
    "finance invoice",
    "finance export",
    "archive run",
    "archive list",
    "archive verify",
    "archive restore",
    "archive sign",
)
FORMER = {
    "wallets freeze": "wallets stop",
    "wallets thaw": "wallets resume",
    "withdrawals thaw": "withdrawals resume",
    "audit show": "audit list",
}
"""Former names, which still work, and today's."""
CLIENTS = ("call", "listen", "trigger", "verify", "explain")
"""The commands of the Python client."""
LISTS = (
    "inbox",
    "notifications list",
    "merchant list",
    "rates list",
    "fees list",
    "withdrawals list",
    "deposits list",
    "deposits chains",
    "sweep list",
    "callbacks list",
    "reconcile",
    "reconcile treasury",
    "book verify",
    "operator list",
    "audit list",
    "audit verify",
    "doctor",
    "settings",
    "migrate",
)
HEAVY = ("psycopg", "rich", "structlog", "starlette", "coincurve", "cryptography", "uvloop", "jinja2")


def names_of(command: Any, prefix: str = "") -> list[str]:
    children = getattr(command, "commands", None)
    if children is None:
        return [prefix.strip()]
    own = [prefix.strip()] if command.invoke_without_command else []
    shown = {key: child for key, child in children.items() if not child.hidden}
    return own + [name for key, child in shown.items() for name in names_of(child, f"{prefix} {key}")]


def test_the_program_has_exactly_the_commands_that_are_promised() -> None:
    assert sorted(names_of(load_all_commands())) == sorted(COMMANDS)


def test_a_former_name_is_the_same_command_and_says_todays(wallet: Wallet) -> None:
    assert {name for name in COMMANDS if name in FORMER} == set()
    for former, today in FORMER.items():
        helps = [CliRunner().invoke(app, [*name.split(), "--help"]).stdout for name in (former, today)]
        assert helps[0].replace(former, today) == helps[1] != ""
    wallet.open_merchant("Shop")
    listed = wallet.run("audit", "show", "--json")
    assert json.loads(listed.stdout) == wallet.ask("audit", "list")
    assert listed.stderr == "`show` is called `list` now. Both work.\n"
    stopped = wallet.run("wallets", "freeze", "ERC20", "--reason", "the node lies")
    assert "`freeze` is called `stop` now. Both work." in stopped.stderr
    assert [stop["cause"] for stop in wallet.ask("wallets", "list")["stops"]] == ["the node lies"]


@each_row(
    "arguments",
    [
        ("book", "credit", "Shop", "USDT", "-5", "--reason", "x"),
        ("finance", "report", "-1"),
        ("withdrawals", "show", "-50"),
    ],
)
def test_a_number_with_a_minus_sign_is_explained(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    said = " ".join(result.stderr.replace("│", " ").split())
    assert "begins with a minus sign, so it was read as an option. An amount or a rate is above 0." in said
    assert "such as `book debit`" in said


@each_row("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--help"])
    assert result.exit_code == 0
    assert "Example" in result.stdout
    # Integrators have the client's program alone.
    assert re.search(rf"merchant-wallet(-client)? {command}\b", result.stdout)
    assert ("--data" in result.stdout) == (command not in ("backup key", "screening check-list", *CLIENTS))
    assert ("--json" in result.stdout) == (command not in ("up", "serve", "work", "signer"))


def test_the_help_names_every_command_as_the_command_itself_does() -> None:
    listed = {row.name: row.summary for row in ROWS}
    children = load_all_commands().commands
    assert listed == {name: command.get_short_help_str(1000) for name, command in children.items()}


def test_lists_of_commands_cut_no_sentence_off() -> None:
    tree: Any = typer.main.get_command(app)
    stubs = tree.commands
    below = [one for stub in stubs.values() for one in getattr(stub.load(), "commands", {}).values()]
    assert len(below) > 100
    cut = [one.name for one in (*stubs.values(), *below) if one.get_short_help_str(45).endswith("...")]
    assert cut == []


def imported_by(*command_lines: str) -> set[str]:
    """The modules that a process has imported after these command lines."""
    look = """
import io, sys
from contextlib import redirect_stdout
from merchant_wallet.cli.command_table import ROWS
from merchant_wallet.cli.program import app
for line in sys.argv[1:]:
    with redirect_stdout(io.StringIO()):
        app(line.split(), standalone_mode=False)
print(*sys.modules)
"""
    seen = subprocess.run(
        [sys.executable, "-c", look, *command_lines], capture_output=True, text=True, check=True
    )
    return set(seen.stdout.split())


def test_the_help_of_the_program_imports_no_command_and_little_else() -> None:
    imported = imported_by("--help", "--version")
    assert not imported & {*HEAVY, "asyncio", "pydantic", "Crypto", "msgspec"}
    commands = {f"merchant_wallet.cli.{row.module}" for row in ROWS}
    assert not imported & commands


def test_the_help_of_a_command_loads_nothing_that_only_the_command_needs() -> None:
    assert not imported_by(*(f"{command} --help" for command in COMMANDS)) & {*HEAVY, "Crypto"}


def test_the_version_is_the_projects() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    said = CliRunner().invoke(app, ["--version"])
    assert (said.exit_code, said.stdout) == (0, f"merchant-wallet {project['version']}\n")


@pytest.mark.new_database
@pytest.mark.parametrize("command", LISTS)
def test_with_json_there_is_one_document_even_when_there_is_nothing_to_list(
    wallet: Wallet, command: str
) -> None:
    result = wallet.run(*command.split(), "--json", status=1 if command == "doctor" else 0)
    assert isinstance(json.loads(result.stdout), dict)
    assert result.stdout.count("\n") == 1


def test_with_json_a_refusal_is_one_document_too(wallet: Wallet) -> None:
    wallet.open_merchant()
    refused = wallet.refuse_document("book", "debit", "Shop", "USDT", "1", "--reason", "x")
    assert (refused["ok"], refused["code"]) == (False, 42200)
    assert "more than the available balance" in refused["msg"]
    unknown = wallet.refuse_document("merchant", "show", "nobody")
    assert (unknown["ok"], unknown["code"]) == (False, None)


def test_a_reason_that_reads_json_asks_for_no_document(wallet: Wallet) -> None:
    wallet.open_merchant()
    assert "Refused (42200)" in wallet.refuse("book", "debit", "Shop", "USDT", "1", "--reason", "--json")


def test_no_command_makes_a_master_key(wallet: Wallet) -> None:
    elsewhere = Wallet(wallet.url, wallet.folder.with_name("elsewhere"))
    for command in (("merchant", "create", "Shop"), ("book", "verify")):
        assert "master key is not in" in elsewhere.refuse(*command, status=2)
    assert not elsewhere.folder.exists()
    assert wallet.ask("merchant", "list") == {"merchants": []}


def test_the_folder_alone_leads_to_a_service_that_was_told_its_database(
    wallet: Wallet, tmp_path: Path
) -> None:
    checkpoints = tmp_path / "apart"
    write_runtime_file(Settings(data=wallet.folder, database_url=wallet.url, checkpoint_dir=checkpoints))
    wallet.variables = {}
    wallet.run("merchant", "create", "Shop", "--data", wallet.folder)
    assert len(wallet.ask("merchant", "list", "--data", wallet.folder)["merchants"]) == 1
    assert read_running(wallet.folder).checkpoint_dir == checkpoints
    remove_runtime_file(wallet.folder)
    typo = tmp_path / "nope"
    said = wallet.refuse("merchant", "list", "--data", typo, status=2)
    assert said.startswith(f"There is no wallet in the folder {typo}.")
    assert said.endswith("would make a new, empty one there.")
    assert wallet.ask("merchant", "list", "--data", typo, status=2)["msg"] == said
    assert "No wallet is running" in wallet.refuse("merchant", "list", "--data", wallet.folder, status=2)


def test_variables_win_over_the_running_services_note(
    wallet: Wallet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_runtime_file(Settings(data=tmp_path, database_url=wallet.url, checkpoint_dir=tmp_path / "apart"))
    monkeypatch.setenv("WALLET_SANDBOX", "true")
    other = "postgresql://wallet@other/wallet"
    monkeypatch.setenv("WALLET_DATABASE_URL", other)
    found = read_running(tmp_path)
    assert (found.database_url, found.checkpoint_dir) == (other, None)
    monkeypatch.setenv("WALLET_DATABASE_URL", wallet.url)
    monkeypatch.setenv("WALLET_CHECKPOINT_DIR", "mine")
    found = read_running(tmp_path)
    assert (found.database_url, found.checkpoint_dir) == (wallet.url, Path("mine"))


def test_where_nothing_runs_the_command_says_how_to_start_it(tmp_path: Path) -> None:
    folder = tmp_path / "my wallet"
    with ForkedCommand("merchant", "list", "--data", folder, environment=clean_environment()) as listing:
        status, output, errors = listing.finish()
    assert (status, output) == (2, "")
    assert f"merchant-wallet up --data '{folder}'" in errors
    assert "Traceback" not in errors
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("withdrawals", "approve", "1", "--reason", "x"), "Error: No such option: --reason\n"),
        (("withdrawals", "list", "--statu", "paid"), "No such option: --statu (Possible options: --status)"),
        (
            ("merchant", "set", "Shop", "--fee", "1%"),
            "(Possible options: --transfer-fee-rate, --withdraw-fee-min, --withdraw-fee-rate)",
        ),
        (("withdrawals", "list", "Shop"), "extra argument(s) (Shop). A merchant follows after --merchant\n"),
    ],
)
def test_what_is_suggested_for_a_wrong_word_means_the_same(arguments: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_with_json_what_could_not_be_asked_is_answered_with_a_document(wallet: Wallet) -> None:
    for arguments, said in (
        (("withdrawals", "show", "1", "--bogus"), "No such option: --bogus"),
        (("withdrawals", "approve"), "Missing argument"),
        (
            ("book", "credit", "Shop", "EUR", "1", "--reason", "x"),
            "Invalid value for 'CURRENCY': 'EUR' is not one of 'USDT', 'KFB'.",
        ),
        (("screening", "show", "x"), "Invalid value for 'NUMBER': It must be a whole number"),
        (
            ("audit", "list", "--limit", "0"),
            "Invalid value for '--limit': It must be greater than or equal to 1",
        ),
        (("rates", "look"), "No such command 'look'. rates has set, remove, list, pause, resume."),
        (("nothing",), "No such command"),
        (("withdrawals", "list", "--status", "lost"), "--status is one of"),
        (("merchant", "set", "Shop", "--payout-limit", "5"), "`merchant payout-rules` changes it"),
        (("merchant", "set", "Shop", "tax-id=7"), "An option is typed as --tax-id 7"),
    ):
        document = wallet.ask(*arguments, status=2)
        assert (document["ok"], document["code"]) == (False, None)
        assert said in document["msg"], arguments
        assert wallet.run(*arguments, status=2).stdout == "", arguments
    wallet.variables["WALLET_DATABASE_URL"] = "postgresql://wallet@127.0.0.1:1/wallet"
    away = wallet.ask("merchant", "list", status=2)["msg"]
    assert "can't be reached" in away
    assert "Is the server running" not in away


def test_a_folder_that_may_not_be_used_says_what_to_do() -> None:
    failure = explain(PermissionError(13, "Permission denied", "/srv/wallet"))
    assert failure is not None
    assert failure.text.startswith("/srv/wallet: Permission denied. Use a user that may use it.")


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
    assert applied[0] == "0001_baseline_home"
    assert wallet.ask("merchant", "list") == {"merchants": []}
    assert wallet.ask("migrate") == {"applied": [], "roles": {}}


def test_a_service_that_could_not_pay_is_not_started(wallet: Wallet) -> None:
    assert "WALLET_ERC20_RPC or WALLET_TRC20_RPC must name a node" in wallet.refuse(
        "up", "--no-sandbox", status=2
    )


def test_a_fault_of_ours_is_not_dressed_up_as_a_sentence(
    wallet: Wallet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stumble(conn: object) -> list[object]:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(store, "list_merchants", stumble)
    result = CliRunner().invoke(app, ["merchant", "list"], env=wallet.variables)
    assert type(result.exception) is ZeroDivisionError
