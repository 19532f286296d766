"""The README is true: its commands and files exist, its table is the service's, CI runs its test commands."""

import json
import re
from pathlib import Path

import pytest

from merchant_wallet.api.reference.openapi import read_examples
from merchant_wallet.processes.routes import OPERATIONS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [
    path.relative_to(ROOT)
    for path in (ROOT / "README.md", ROOT / "client/README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "KFB" in path.read_text()
    and not {"decisions", "operations"} & set(path.parts)
    and path.name != "settings.md"
]
"""Those that a reader may open first. A decision, a setting and an operation are read from one of them."""
MAX_LINES = 120
FIRST_SCREEN_LINES = 20
PICTURES = re.findall(r'<img src="([^"]+)" alt="([^"]+)"', README)
MAX_PICTURE_BYTES = 150_000
LINKS = sorted(set(re.findall(r"\]\((?!https:)([^)#]+)[^)]*\)", README)))


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


def test_it_is_short_and_shows_a_request_and_its_answer_of_a_real_run_on_the_first_screen() -> None:
    assert len(README.splitlines()) < MAX_LINES
    first = "\n".join(README.splitlines()[:FIRST_SCREEN_LINES])
    sent, answered = re.findall(r"^```(?:http|json)\n(.+?)```$", first, re.MULTILINE | re.DOTALL)
    operation, _, request = sent.removeprefix("POST /merchant/").partition("\n")
    example = read_examples()["operations"][operation]
    assert (json.loads(request), json.loads(answered)) == (example["request"], example["answer"])


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_each_document_says_at_its_first_use_what_kfb_is(document: Path) -> None:
    # The names of fields and codes in a generated table explain nothing, and its page has a text above.
    paragraphs = re.sub(r"^(?:```.*?^```|<!--.*?-->)", "", (ROOT / document).read_text(), flags=re.M | re.S)
    first = next(paragraph for paragraph in paragraphs.split("\n\n") if "KFB" in paragraph)
    assert re.search(r"own\s+unit\s+of\s+account|自有的记账单位", first), first


def test_the_table_of_operations_names_each_of_them_once() -> None:
    named = re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE)
    assert sorted(named) == sorted(operation.name for operation in OPERATIONS)


def test_every_picture_is_there_and_light_and_says_what_it_shows() -> None:
    assert README.count("<img ") == len(PICTURES) > 0
    for source, _ in PICTURES:
        assert 0 < (ROOT / source).stat().st_size <= MAX_PICTURE_BYTES, source
