"""The commands in the pages are commands of the program, with options that it has."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.rows import each_row

from merchant_wallet.cli.program import load_all_commands

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PROGRAM = "merchant-wallet "
COMMANDS: Any = load_all_commands()


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


def test_the_page_about_scaling_has_commands() -> None:
    names = {" ".join(words[:2]) for words in list_commands(ROOT / "docs" / "scaling.md")}
    assert {"cell add", "cell list", "cell move", "cell drain", "merchant create", "merchant move"} <= names
