"""What a book of many entries takes, and what its archive gives back: `python -m bench.capacity`.

Rules: one merchant with 500 sub-users. Every entry is made by the book's writer, in groups of at most 512 as
in the service. The writer's clock goes through four months, of which three are archived. Sizes are those of
PostgreSQL after a vacuum. `--work` names a folder on the disk to measure. 1,000,000 entries need 3 GB there,
each further million 1 GB. Keys are the bench's own.
"""

import asyncio
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from bench.cold import register_sub_users
from bench.database import open_bench_database, open_database
from bench.invented import invent_addresses, name_sub_user
from bench.merchants import BenchMerchant
from bench.writers import ask, open_writer
from merchant_wallet.base import db
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import KFB
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.archive.checks import check_entries
from merchant_wallet.book.archive.closing import close_months
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.archive.months import ArchivedMonth
from merchant_wallet.book.archive.removal import remove_rows
from merchant_wallet.book.commands import Adjust, Command, MerchantToUser, UserToMerchant
from merchant_wallet.book.nonce_partitions import open_nonce_days
from merchant_wallet.book.verification.verify import verify_book
from merchant_wallet.merchants import store
from merchant_wallet.reporting import rollup

QUERIES: Final = db.Queries(Path(__file__).with_name("capacity.sql"))
SUB_USERS: Final = 500
MONTHS: Final = 4
MONTH_MS: Final = 31 * DAY_MS
GROUP: Final = 512
WAITING: Final = 20_000
UNITS: Final = 10_000
MIB: Final = 1 << 20

Say = Callable[[str, float, str], None]


def main(
    entries: Annotated[int, typer.Option(min=10_000, help="How many entries to make.")] = 1_000_000,
    work: Annotated[Path | None, typer.Option(metavar="DIR", help="A folder on the disk to measure.")] = None,
    out: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Where figures go.")] = None,
) -> None:
    """Make a book of this size, measure it, archive three quarters of it, and measure again."""
    found: dict[str, float] = {"entries": entries}

    def say(what: str, value: float, unit: str) -> None:
        found[f"{what} ({unit})"] = round(value, 3)
        typer.echo(f"{what:48} {value:12,.1f} {unit}")

    with tempfile.TemporaryDirectory(dir=work) as folder, open_database(Path(folder) / "data") as url:
        asyncio.run(_Capacity(url, ArchiveFolder(Path(folder) / "archive"), entries, say).run())
    if out is not None:
        out.write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")


class _Capacity:
    """One measurement."""

    def __init__(self, url: str, folder: ArchiveFolder, entries: int, say: Say) -> None:
        self._url = url
        self._folder = folder
        self._entries = entries
        self._say = say
        self._began_ms = now_ms()
        self._at_ms = self._began_ms
        self._made = 0
        self._merchant: BenchMerchant

    async def run(self) -> None:
        await self._open()
        await self._timed("entries made", self._fill, per=self._entries)
        await self._measure("full")
        await self._timed("verified from the tables", self._verify, per=self._entries)
        months = await self._archive()
        await self._measure("archived")
        await self._timed("verified over files and tables", self._verify, per=self._entries)
        self._at_ms += MONTH_MS
        again = sum(month.entries for month in months)
        await self._timed("entries made again", lambda: self._fill_some(again), per=again)
        await self._measure("archived and filled again")

    async def _open(self) -> None:
        async with open_bench_database(self._url) as database:
            made = await database.open_merchant("capacity")
            await database.ask(
                made.merchant_id, [Adjust(KFB, 10**15, "funds for a measurement", "bench", None)]
            )
        self._merchant = BenchMerchant(made.merchant_id, made.app_key, "", {}, [], [], SUB_USERS)
        await register_sub_users(self._url, [self._merchant], lambda *_: None)

    async def _fill(self) -> None:
        for _ in range(MONTHS):
            await self._fill_some(self._entries // MONTHS)
            self._at_ms += MONTH_MS
        self._at_ms -= MONTH_MS

    async def _fill_some(self, count: int) -> None:
        """Make transfers, half in each direction, in the month of the clock."""
        await open_nonce_days(self._url, self._at_ms // DAY_MS)
        prefix = secrets.token_hex(6)
        options: dict[str, Any] = {"queue_limit": WAITING, "batch_limit": GROUP, "clock": lambda: self._at_ms}
        async with open_writer(self._url, connections=2, **options) as writer:
            for first in range(0, count, WAITING):
                numbers = range(first, min(count, first + WAITING))
                commands = [self._make_transfer(f"{prefix}-{number:09}", number) for number in numbers]
                await ask(writer, self._merchant.merchant_id, commands)
        self._made += count

    def _make_transfer(self, name: str, number: int) -> Command:
        user = number // 2 % SUB_USERS
        if number % 2:
            return UserToMerchant(name, name_sub_user(user), KFB, UNITS, 0, False)
        address = invent_addresses(self._merchant.merchant_id, user).evm
        return MerchantToUser(name, address, KFB, UNITS)

    async def _verify(self) -> None:
        async with await db.connect(self._url) as connection:
            merchant_id = self._merchant.merchant_id
            report = await verify_book(connection, connection, merchant_id, archive=self._folder)
        assert report.violation is None, report.violation

    async def _archive(self) -> list[ArchivedMonth]:
        merchant_id = self._merchant.merchant_id
        async with await db.connect(self._url) as connection:
            row = await (await connection.execute(QUERIES["read_head"].text)).fetchone()
            assert row is not None
            head = {row[0]: row[1].hex()}
            # More than one round, until the figures contain everything.
            while await rollup.advance_all(connection, now_ms(), pause_s=0):
                pass
            began = time.perf_counter()
            closed = await close_months(
                connection, self._folder, merchant_id, self._at_ms, head, _sign, now_ms(), _ignore
            )
            taken = time.perf_counter() - began
            count = sum(month.entries for month in closed.months)
            self._say("archived entries", count, "entries")
            self._say("files written and read again", count / taken, "entries/s")
            began = time.perf_counter()
            for month in closed.months:
                check_entries(self._folder, self._folder.read_manifest(merchant_id, month.month), head)
            self._say("files checked", count / (time.perf_counter() - began), "entries/s")
            await self._remove(connection, closed.months, count)
        size = sum(path.stat().st_size for path in self._folder.path.rglob("*") if path.is_file())
        self._say("files of the archive", size / count, "bytes/entry")
        return closed.months

    async def _remove(self, connection: store.Connection, months: list[ArchivedMonth], count: int) -> None:
        slowest = 0.0
        last_s = time.perf_counter()

        def note(*_: object) -> None:
            nonlocal slowest, last_s
            slowest = max(slowest, time.perf_counter() - last_s)
            last_s = time.perf_counter()

        async def remove() -> None:
            for month in months:
                await remove_rows(connection, month, note)

        await self._timed("rows removed", remove, per=count)
        self._say("the longest step of it", slowest * 1000, "ms")

    async def _timed(self, what: str, act: Callable[[], Any], *, per: int) -> None:
        async with await db.connect(self._url) as connection:
            before = await self._read(connection, "read_wal")
            began = time.perf_counter()
            await act()
            taken = time.perf_counter() - began
            wal = await self._read(connection, "read_wal") - before
        self._say(what, per / taken, "entries/s")
        self._say(f"{what}: WAL", wal / per, "bytes/entry")

    async def _measure(self, when: str) -> None:
        async with await db.connect(self._url) as connection:
            began = time.perf_counter()
            await connection.execute(QUERIES["tidy"].text.encode())
            self._say(f"{when}: vacuum", time.perf_counter() - began, "s")
            rows = await (await connection.execute(QUERIES["read_sizes"].text)).fetchall()
        for name, size in rows:
            self._say(f"{when}: {name}", size / MIB, "MiB")
        total = sum(size for _, size in rows)
        self._say(f"{when}: all of these", total / MIB, "MiB")
        self._say(f"{when}: all of these", total / self._made, "bytes/entry")

    async def _read(self, connection: store.Connection, name: str) -> int:
        row = await (await connection.execute(QUERIES[name].text.encode())).fetchone()
        assert row is not None
        return int(row[0])


def _sign(_: str) -> str:
    return "00" * 64


def _ignore(*_: object) -> None:
    return None


if __name__ == "__main__":
    typer.run(main)
