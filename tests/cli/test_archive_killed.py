"""A command of the archive that is killed at any step leaves a sound book, and is continued or taken back."""

import json
import signal
from collections.abc import Iterator

import pytest
from tests.archive_scene import prepare
from tests.book.fake_writer import MERCHANT_ID, FakeWriter
from tests.cli.conftest import Wallet
from tests.cli.killable_archive import run_to_death
from tests.cli.test_archive import RUN, count, read_journal
from tests.crash_points import Program, before_change
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


@pytest.mark.parametrize(
    "stride", [pytest.param(11, id="short"), pytest.param(1, id="long", marks=pytest.mark.extended)]
)
def test_whatever_change_a_kill_comes_before_nothing_is_lost_or_doubled(
    wallet: Wallet, book: FakeWriter, stride: int
) -> None:
    before = read_journal(wallet)
    for arguments in (RUN, RESTORE):
        for step in range(1, MAX_STEPS, stride):
            is_killed = run_to_death(Program(before_change(step)), wallet.variables, *arguments)
            assert wallet.ask("book", "verify")["ok"], f"killed before change {step} of {arguments}"
            if not is_killed:
                break
        assert not is_killed
        assert step > stride
    assert read_journal(wallet) == before
    assert count(wallet, "archived_order") == 0


def test_a_removal_whose_process_was_killed_can_be_taken_back(wallet: Wallet, book: FakeWriter) -> None:
    before = read_journal(wallet)
    wallet.ask(*RUN, "--keep-rows")
    told = ("delete from posting", "1", json.dumps(wallet.variables), *RUN)
    child = fork_program("tests.cli.killable_archive", *told)
    try:
        assert child.wait_for_state() == -signal.SIGKILL
    finally:
        child.end()
    assert [one["rows"] for one in wallet.ask("archive", "list")["months"]] == ["partly", "kept", "kept"]
    wallet.ask(*RESTORE)
    assert read_journal(wallet) == before
