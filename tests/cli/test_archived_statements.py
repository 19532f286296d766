"""Statements and sums over a journal whose first months are in files."""

import asyncio

import pytest
from tests.book.fake_writer import MERCHANT_ID
from tests.cli.conftest import Wallet
from tests.cli.test_archive import RUN, path_of

from merchant_wallet.base.db import connect
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.reporting import statements

STATEMENTS = (
    (),
    ("--account", "merchant:KFB"),
    ("--account", "fees:KFB"),
    ("--from", "2025-10-01", "--to", "2025-11-01"),
    ("--from", "2025-09-01T00:00:02Z", "--to", "2025-12-01T00:00:03Z", "--account", "merchant:USDT"),
    ("--to", "2025-09-01"),
    ("--from", "2025-12-01"),
)


def read_statements(wallet: Wallet) -> list[str]:
    """Statements of all kinds."""
    return [wallet.run("book", "statement", MERCHANT_ID, *options).stdout for options in STATEMENTS]


def test_statements_and_fees_are_the_same_before_and_after(
    wallet: Wallet, named: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "PAGE_ROWS", 2)
    wallet.ask("fees", "withdraw", MERCHANT_ID, "KFB", "0.5", "--reason", "x")
    before, fees = read_statements(wallet), wallet.ask("fees", "list")
    assert all(text.count("\n") > 1 for text in before[:5])
    for month in ("2025-10", "2025-12"):
        wallet.ask("archive", "run", "--before", month)
        assert read_statements(wallet) == before
        assert wallet.ask("fees", "list") == fees
    wallet.ask("archive", "restore", MERCHANT_ID, "--from", "2025-10")
    assert read_statements(wallet) == before


def test_a_statement_that_is_being_read_goes_on_in_the_files(
    wallet: Wallet, named: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "PAGE_ROWS", 1)
    archive = ArchiveFolder(wallet.folder / "archive")

    async def read(*, meanwhile: bool) -> list[statements.StatementRow]:
        rows = []
        async with await connect(wallet.url) as conn:
            async for row in statements.read_statement(conn, MERCHANT_ID, archive=archive):
                rows.append(row)
                # In the middle of an entry with two postings.
                if meanwhile and len(rows) == 11:
                    await asyncio.to_thread(wallet.ask, *RUN)
        return rows

    before = asyncio.run(read(meanwhile=False))
    assert before[8].entry_id == before[11].entry_id
    assert asyncio.run(read(meanwhile=True)) == before


def test_a_statement_without_its_file_says_that_it_is_not_complete(
    wallet: Wallet, named: dict[str, int]
) -> None:
    wallet.ask(*RUN)
    path_of(wallet).unlink()
    result = wallet.run("book", "statement", MERCHANT_ID, status=1)
    assert "The statement is not complete" in result.stderr
    assert str(path_of(wallet)) in result.stderr
