"""A command of the archive that is killed at any step leaves a sound book, and is continued or taken back."""

import json
import signal
from collections.abc import Iterator

import pytest
from tests.archive_scene import prepare
from tests.book.fake_writer import MERCHANT_ID, FakeWriter
from tests.cli.conftest import Wallet
from tests.cli.test_archive import RUN, count, read_journal
from tests.fork_server import fork_program

RESTORE = ("archive", "restore", str(MERCHANT_ID), "--from", "2025-09")
MAX_STEPS = 400


@pytest.fixture
def book(wallet: Wallet) -> Iterator[FakeWriter]:
    """A book from September to December."""
    made = FakeWriter(wallet.url)
    prepare(made, wallet.variables)
    yield made
    made.close()


def run_killed(wallet: Wallet, step: int, *arguments: str, text: str = "") -> bool:
    """Run a command that is killed before a step, or a statement. False: it ended before that."""
    variables = json.dumps(wallet.variables)
    child = fork_program("tests.cli.killable_archive", str(step), text, variables, *arguments)
    try:
        ended = child.wait_for_state()
    finally:
        child.end()
    assert ended in (0, -signal.SIGKILL)
    return ended != 0


@pytest.mark.parametrize(
    "stride", [pytest.param(19, id="short"), pytest.param(1, id="long", marks=pytest.mark.extended)]
)
def test_whatever_step_a_kill_comes_before_nothing_is_lost_or_doubled(
    wallet: Wallet, book: FakeWriter, stride: int
) -> None:
    before = read_journal(wallet)
    for arguments in (RUN, RESTORE):
        step = 1
        while run_killed(wallet, step, *arguments):
            assert wallet.ask("book", "verify")["ok"], f"killed before step {step} of {arguments}"
            step += stride
            assert step < MAX_STEPS
        assert wallet.ask("book", "verify")["ok"]
    assert read_journal(wallet) == before
    assert count(wallet, "archived_order") == 0


def test_a_removal_that_was_killed_can_be_taken_back(wallet: Wallet, book: FakeWriter) -> None:
    before = read_journal(wallet)
    wallet.ask(*RUN, "--keep-rows")
    assert run_killed(wallet, 2, *RUN, text="delete from posting")
    assert [one["rows"] for one in wallet.ask("archive", "list")["months"]] == ["partly", "kept", "kept"]
    wallet.ask(*RESTORE)
    assert read_journal(wallet) == before
