"""The runbook has steps for each alert, with commands that exist and log lines that are written."""

import re
import shlex
from pathlib import Path
from typing import Any, Final

import pytest
from scripts.documents.runbook import read_steps

from merchant_wallet.cli.program import load_all_commands
from merchant_wallet.observability.metric_table import METRICS

SOURCES: Final = Path(__file__).parents[2] / "src"
STEPS: Final = read_steps()
OTHER_PROGRAMS: Final = {"journalctl", "df", "timedatectl"}


@pytest.fixture(scope="module")
def commands() -> Any:
    """The whole command line. To import it takes a moment, so no other test waits for it."""
    return load_all_commands()


def find_command(command: Any, words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words name, and the words behind its name. Raises KeyError."""
    while getattr(command, "commands", None) and words and not words[0].startswith("-"):
        command, words = command.commands[words[0]], words[1:]
    return command, words


def list_quoted() -> list[str]:
    """What the steps quote, without what is one word."""
    texts = [text for steps in STEPS.values() for text in (steps.act, steps.wake, steps.over)]
    return [quoted for text in texts for quoted in re.findall(r"`([^`]+)`", text) if " " in quoted]


def test_each_alert_has_its_steps_and_nothing_else_has() -> None:
    assert sorted(STEPS) == sorted(alert.name for metric in METRICS for alert in metric.alerts)
    assert all(steps.look and steps.act and steps.over for steps in STEPS.values())


def test_what_pages_wakes_somebody() -> None:
    pages = {alert.name for metric in METRICS for alert in metric.alerts if alert.severity == "page"}
    assert sorted(name for name in pages if not STEPS[name].wake) == []


def test_each_first_command_exists_with_its_options(commands: Any) -> None:
    for name, steps in STEPS.items():
        program, *words = shlex.split(steps.look)
        if program in OTHER_PROGRAMS:
            continue
        assert program == "merchant-wallet", name
        command, rest = find_command(commands, words)
        is_group = getattr(command, "commands", None) and not command.invoke_without_command
        assert not is_group, f"{name}: {steps.look} is a group"
        known = {option for parameter in command.params for option in parameter.opts}
        assert [word for word in rest if word.startswith("--") and word not in known] == [], name


def test_what_the_steps_quote_is_a_command_or_a_text_of_the_program(commands: Any) -> None:
    code = " ".join(path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py"))
    groups = set(commands.commands)
    unknown = []
    for quoted in list_quoted():
        words = shlex.split(quoted) if "'" not in quoted else quoted.split()
        if words[0] in groups:
            find_command(commands, words)
        elif words[0] not in OTHER_PROGRAMS | {"systemctl"} and quoted not in code:
            unknown.append(quoted)
    assert unknown == []
