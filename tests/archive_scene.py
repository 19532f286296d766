"""A book over several months, and what commands of the archive need: figures, checkpoints and their key."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.book.fake_writer import COIN, FakeWriter
from tests.checkpoints import write_checkpoints

from merchant_wallet.audit.checkpointing.keys import open_service_signer
from merchant_wallet.base.config import load_settings
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import connect
from merchant_wallet.book import commands
from merchant_wallet.book.archive.closing import close_months
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.archive.removal import remove_rows
from merchant_wallet.book.outcomes import Adjusted
from merchant_wallet.processes.base import make_base
from merchant_wallet.reporting import rollup

MONTHS = ("2025-09", "2025-10", "2025-11")
"""The closed months of the book. It goes on in December."""
SMALL_BLOCKS = 4
"""Entries of a block in these tests, so that a month has several."""
TABLES = ("entry", "posting", "archived_month", "archived_order")
"""The tables of the journal and of its archive."""
REMOVED_AT_ONCE = 3
"""Entries that one transaction removes in these tests."""


def moment_of(month: str) -> int:
    """The first moment of a month."""
    return int(datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC).timestamp()) * 1000


def write_months(book: FakeWriter) -> dict[str, int]:
    """Let the book be used from September to December 2025. Returns the entries' ids by name."""
    book.draft.now_ms = moment_of("2025-09")
    named = {"fund": book.fund(10_000 * COIN).entry_id}
    anna = book.register("anna")
    named["anna"] = anna.user_id
    named["exchange"] = book.exchange("x1", USDT, KFB, 1_000 * COIN).entry_id
    named["credit"] = book.credit(anna, "c1", 500 * COIN).entry_id
    named["debit"] = book.debit(anna, "d1", 100 * COIN, 10**6).entry_id
    adjusted = book.ask(commands.Adjust(KFB, -5 * COIN, "a correction", "ann", "anna", "ref-1", None))
    assert isinstance(adjusted, Adjusted)
    named["adjust"] = adjusted.entry_id
    for number, month in enumerate(("2025-10", "2025-11", "2025-12")):
        book.draft.now_ms = moment_of(month)
        paid = book.withdraw(f"w{number}", 20 * COIN)
        book.move(commands.TakeUp(paid), commands.Settle(paid, "0xfeed"))
        named[f"paid {month}"] = paid
        for transfer in range(3):
            one = book.debit(anna, f"d{month}-{transfer}", COIN, 10**6)
            named[f"debit {month} {transfer}"] = one.entry_id
    return named


async def add_up(url: str) -> None:
    """Bring the figures up to date, as the worker does."""
    async with await connect(url) as conn:
        await rollup.advance_all(conn, moment_of("2026-01"), pause_s=0)


async def checkpoint(url: str, variables: dict[str, str], at_ms: int) -> None:
    """Write a checkpoint of each book, as the worker does."""
    base = make_base(load_settings(variables), url)
    async with await connect(url) as conn:
        signer = await open_service_signer(conn, base.settings, at_ms)
        await write_checkpoints(conn, signer, base.checkpoint_dir, at_ms, interval_ms=0)


def prepare(book: FakeWriter, variables: dict[str, str]) -> dict[str, int]:
    """A book with months that can be archived. Returns its entries' ids by name."""
    named = write_months(book)
    asyncio.run(add_up(book.url))
    asyncio.run(checkpoint(book.url, variables, moment_of("2026-01")))
    return named


@contextmanager
def tampered(book: FakeWriter, statement: str) -> Iterator[None]:
    """One change of the journal's or the archive's tables, which is taken back at the end."""
    for table in TABLES:
        book.run(f"create temporary table kept_{table} as table {table}")
    book.tamper(statement)
    yield
    for table in TABLES:
        book.run(f"delete from {table}")
        book.run(f"insert into {table} table kept_{table}")
        book.run(f"drop table kept_{table}")


async def archive_book(url: str, folder: Path, merchant_id: int, before: str) -> None:
    """Archive a book as the command does, without its keys and its log."""

    def ignore(*_: object) -> None:
        return None

    await add_up(url)
    async with await connect(url) as conn:
        found = await conn.execute(
            "select entry_id, hash from entry where merchant_id = %s order by entry_id desc limit 1",
            (merchant_id,),
        )
        head = await found.fetchone()
        assert head is not None
        seen = {head[0]: head[1].hex()}
        at_ms = moment_of("2026-01")
        files = ArchiveFolder(folder)
        closed = await close_months(
            conn, files, merchant_id, moment_of(before), seen, lambda _: "00" * 64, at_ms, ignore
        )
        assert closed.months
        for month in closed.months:
            await remove_rows(conn, month, ignore)


def file_of(folder: Path, merchant_id: int, month: str) -> Path:
    """The file of an archived month."""
    return folder / "archive" / str(merchant_id) / f"{month}.jsonl.gz"
