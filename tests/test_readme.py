"""The README is true: its commands and files exist, its table is the service's, CI runs its test commands."""

import re
from pathlib import Path

import pytest

from merchant_wallet.processes.routes import OPERATIONS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PICTURES = re.findall(r'<img src="([^"]+)" alt="([^"]+)"', README)
MAX_PICTURE_BYTES = 150_000
LINKS = sorted(set(re.findall(r"\]\(([^)#]+)[^)]*\)", README)))


def test_every_make_command_exists() -> None:
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert named == {"demo", "cells-demo", "test", "test-all", "test-tools", "bench", "site"}
    assert named <= targets


@pytest.mark.parametrize("link", LINKS)
def test_every_linked_file_exists(link: str) -> None:
    assert (ROOT / link).exists()


def test_continuous_integration_runs_the_test_commands_of_the_readme() -> None:
    commands = re.findall(r"^```sh\n(.+)\n```$", README, re.MULTILINE)
    assert commands == ["make demo", "make test"]
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert lines[-3:] == ["make test-tools", commands[1], "make test-all"]
    assert "set -euo pipefail" in lines, "the first failure ends it"


def test_the_table_of_operations_names_each_of_them_once() -> None:
    named = re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE)
    assert sorted(named) == sorted(operation.name for operation in OPERATIONS)


def test_every_picture_is_there_and_light_and_says_what_it_shows() -> None:
    assert README.count("<img ") == len(PICTURES) > 0
    for source, _ in PICTURES:
        assert 0 < (ROOT / source).stat().st_size <= MAX_PICTURE_BYTES, source
