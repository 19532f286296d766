"""The operators' page is typed in, block by block."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.operators_book import COMMAND, NOT_RUN, PAGE, Terminal, list_blocks
from tests.folders import make_folder

BLOCKS = list(list_blocks(PAGE.read_text(encoding="utf-8")))
JOURNEYS = ("one machine", "back-up")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for everything that the page names."""
    made = make_folder("merchant-wallet-book-")
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("journey", JOURNEYS)
def test_the_blocks_of_a_journey_work_one_after_the_other(folder: Path, journey: str) -> None:
    """One machine: from `up` to a merchant with money. Back-up: from its key to a rehearsed restore."""
    (folder / "backup").mkdir()
    (folder / "etc").mkdir()
    folders = {"/srv/wallet": folder / "srv", "/mnt/backup": folder / "backup", "/etc/wallet": folder / "etc"}
    terminal = Terminal(folder, folders, WALLET_PORT="0")
    try:
        said = [terminal.type(block) for block in BLOCKS if block.journey == journey]
    finally:
        terminal.close()
    assert len(said) > 2
    assert any("password: " in text for text in said), "the first operator's password is printed"


def test_every_marked_block_belongs_to_a_journey_that_is_tried() -> None:
    assert {block.journey for block in BLOCKS if block.how} == set(JOURNEYS)


def test_what_is_said_not_to_be_run_is_not_marked_to_be_run() -> None:
    assert [block.text for block in BLOCKS if block.how and block.text.startswith(NOT_RUN)] == []


def test_every_block_of_commands_is_run_or_says_that_it_is_not() -> None:
    silent = [block.text for block in BLOCKS if not block.how and not block.text.startswith(NOT_RUN)]
    assert [text for text in silent if any(COMMAND.match(line) for line in text.splitlines())] == []
