"""The commands in the pages are commands of the program, with options that it has."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from merchant_wallet.cli.program import load_all_commands
from merchant_wallet.observability.metric_table import METRICS

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PROGRAM = "merchant-wallet "
COMMANDS: Any = load_all_commands()
STEPS = {alert.name: alert.first for metric in METRICS for alert in metric.alerts}
OTHER_PROGRAMS = ("chronyc", "curl", "select")
"""What else a step lets a person type; `select` in psql."""
PROCESSES = ("serve", "signer", "up", "work")
"""Commands whose names a step uses for the process."""


def list_commands(page: Path) -> Iterator[list[str]]:
    """The words of each command line: in blocks of code, and between back-ticks."""
    text = page.read_text(encoding="utf-8")
    for line in text.splitlines():
        typed = re.sub(r"^[A-Z_]+=\S+ ", "", line.strip()).removeprefix("$ ")
        if line.startswith("    ") and typed.startswith(PROGRAM):
            yield split(typed)
    for typed in re.findall(rf"`({PROGRAM}[^`\n]+)`", text):
        yield split(typed)


def split(typed: str) -> list[str]:
    code = re.split(r" {2,}|\s[#>|]|\s&& ", typed.removeprefix(PROGRAM))[0]
    return shlex.split(code.replace("…", "").replace("'", " "))


def find_command(words: list[str]) -> tuple[Any, list[str]] | None:
    """The command that the words name, and the words after its name."""
    command = COMMANDS
    while hasattr(command, "commands"):
        if not words:
            return command, words
        if words[0].startswith("-"):
            return command, words
        found = command.commands.get(words[0])
        if found is None:
            return (command, words) if command.invoke_without_command else None
        command, words = found, words[1:]
    return command, words


@each_row("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_on_a_page_exists(page: Path) -> None:
    for words in list_commands(page):
        if words[0].isupper():
            # The form of a command, and no command.
            continue
        found = find_command(words)
        assert found is not None, f"{page.name}: merchant-wallet {' '.join(words)}"
        command, rest = found
        known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        for word in rest:
            name = word.partition("=")[0]
            assert not name.startswith("--") or name in {*known, "--help"}, f"{page.name}: {words}"


@each_row("alert", sorted(STEPS), ids=str)
def test_each_first_step_of_an_alert_can_be_typed_and_names_log_lines_that_exist(alert: str) -> None:
    assert STEPS[alert].endswith(".")
    for typed in re.findall(r"`([^`]+)`", STEPS[alert]):
        words = typed.split()
        if typed in PROCESSES:
            continue
        if words[0] in COMMANDS.commands:
            found = find_command(words)
            assert found is not None, typed
            check_complete(*found)
        elif len(words) > 1 and words[0] not in OTHER_PROGRAMS:
            assert any(typed in text for text in read_program()), f"{alert}: {typed}"


def check_complete(command: Any, words: list[str]) -> None:
    """Check that a command has all that it requires, and nothing that it does not know."""
    options = {name: each for each in command.params for name in (*each.opts, *each.secondary_opts)}
    given, arguments = set(), 0
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            arguments += 1
            continue
        assert word in options, f"{command.name}: {word}"
        given.add(options[word].name)
        if not options[word].is_flag:
            assert next(rest, None), f"{command.name}: {word} has no value"
    needed = {each.name for each in command.params if each.required and each.param_type_name == "option"}
    assert needed <= given, f"{command.name}: {needed - given}"
    taken = [each for each in command.params if each.param_type_name == "argument"]
    assert arguments >= sum(each.required for each in taken), f"{command.name}: an argument is missing"
    assert arguments <= len(taken) or any(each.nargs == -1 for each in taken), f"{command.name}: {words}"


@cache
def read_program() -> list[str]:
    """The sources, in which the lines of the log are written. The steps themselves are left out."""
    paths = (path for path in (ROOT / "src").rglob("*.py") if not path.name.endswith("_metrics.py"))
    return [path.read_text(encoding="utf-8") for path in paths]


def test_a_step_that_lacks_what_its_command_requires_is_found() -> None:
    for typed in (
        "wallets stop",
        "wallets stop ERC20",
        "rates set USDT:KFB",
        "withdrawals show",
        "book verify --all",
        "doctor 1",
    ):
        found = find_command(typed.split())
        assert found is not None
        with pytest.raises(AssertionError):
            check_complete(*found)


def test_the_page_about_scaling_has_commands() -> None:
    names = {" ".join(words[:2]) for words in list_commands(ROOT / "docs" / "scaling.md")}
    assert {"cell add", "cell list", "cell move", "cell drain", "merchant create", "merchant move"} <= names
