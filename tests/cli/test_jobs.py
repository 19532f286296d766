"""Long commands that need the same books: the second one says which the first one is, and changes nothing."""

import signal
from collections.abc import Iterator

import psycopg
import pytest
from tests.book.fake_writer import MERCHANT_ID
from tests.cli.conftest import Wallet
from tests.held_jobs import begin_job
from tests.waits import wait_until

from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres import jobs
from merchant_wallet.postgres.jobs import EVERYTHING, scope_of_book

COMMANDS: tuple[tuple[object, ...], ...] = (
    ("merchant", "move", MERCHANT_ID, "east"),
    ("finance", "prepare", "2025-11"),
    ("book", "accept-rollback", "--reason", "restored", "--freeze-open"),
)
OF_THE_ARCHIVE: tuple[tuple[object, ...], ...] = (
    ("archive", "run", "--before", "2025-12"),
    ("archive", "restore", MERCHANT_ID, "--from", "2025-10"),
    ("archive", "sign"),
)


@pytest.fixture
def held(
    wallet: Wallet, named: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> Iterator[psycopg.Connection]:
    """A session that runs a job over everything. Commands of this process see that at once."""
    monkeypatch.setattr(jobs, "PATIENCE_S", 0)
    wallet.run("cell", "add", "east")
    open_other(wallet)
    with connect_sync(wallet.url) as session:
        begin_job(session, EVERYTHING)
        yield session


def open_other(wallet: Wallet) -> int:
    """A merchant beside the one with the old book, whose id was chosen by hand."""
    wallet.tamper("alter table merchant alter merchant_id restart with 2001")
    return wallet.open_merchant("Empty")


def test_each_long_command_names_the_job_in_its_way(wallet: Wallet, held: psycopg.Connection) -> None:
    before = wallet.read("select * from entry order by entry_id")
    for command in COMMANDS:
        assert "another job has these books, archive (all books), begun by cli:ann at 2" in wallet.refuse(
            *command
        ), command
    for command in OF_THE_ARCHIVE:
        faults = wallet.ask(*command, status=1)["faults"]
        assert {fault["merchantId"] for fault in faults} >= {MERCHANT_ID}
        assert all("another job has these books, archive (all books)" in fault["text"] for fault in faults)
    assert wallet.read("select * from entry order by entry_id") == before
    assert wallet.read("select count(*) from archived_month") == [(0,)]
    [finding] = [one for one in wallet.look("doctor")["checks"] if one["name"] == "job"]
    assert finding["text"].startswith("archive (all books), begun by cli:ann")


def test_the_archive_goes_on_with_other_books(
    wallet: Wallet, named: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "PATIENCE_S", 0)
    other = open_other(wallet)
    with connect_sync(wallet.url) as session:
        begin_job(session, scope_of_book(other, 0))
        answer = wallet.ask("archive", "run", "--before", "2025-12", status=1)
    assert [one["rows"] for one in answer["months"]] == ["removed"] * 3
    [fault] = answer["faults"]
    assert fault["merchantId"] == other


def test_a_migration_waits_for_a_job_and_says_for_which(wallet: Wallet, held: psycopg.Connection) -> None:
    wallet.tamper("delete from schema_migration where version > 1")
    with wallet.begin("migrate") as migrating:
        said = "waiting: another job has these books, archive (all books), begun by cli:ann"
        wait_until(lambda: said in migrating.read_errors(), migrating.read_errors)
        assert wallet.read("select count(*) from schema_migration where version > 1") == [(0,)]
        held.close()
        assert migrating.wait() == 0


def test_a_start_of_the_service_that_waits_for_a_job_can_be_stopped(
    wallet: Wallet, held: psycopg.Connection
) -> None:
    wallet.tamper("delete from schema_migration where version > 1")
    with wallet.begin("up", "--port", "0") as starting:
        said = "waiting: another job has these books, archive (all books)"
        wait_until(lambda: said in starting.read_errors(), starting.read_errors)
        starting.send(signal.SIGTERM)
        assert starting.wait() == 0
    assert wallet.read("select count(*) from schema_migration where version > 1") == [(0,)]
