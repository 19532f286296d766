"""The console's pages over several cells: `python -m bench.cell_pages`. With `--quick` the books are small.

Rules: the cells are schemas of the service's own database, and each has five merchants. Their books are
filled with sets by the database itself, so only the pages are measured, not the books' rules. Pages are
requested one after the other on one connection with a session, while the service's workers look at all cells.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from bench import large
from bench.pages import PageTime, sign_in, time_page
from bench.service import CONSOLE_SCRIPT, RunningService, open_service
from merchant_wallet.base import db
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import load_or_create_master_key
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.chart import LAST_FIXED_ID
from merchant_wallet.merchants import store
from merchant_wallet.merchants.cells import adding
from merchant_wallet.merchants.cells.carrying import find_and_carry
from merchant_wallet.merchants.cells.directory import Directory
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.processes.cell_connections import CellConnections
from merchant_wallet.reporting import rollup
from merchant_wallet.reporting.finance import months
from merchant_wallet.reporting.finance.periods import month_of, previous_month

QUERIES: Final = db.Queries(Path(__file__).with_name("cell_pages.sql"))
MERCHANTS: Final = 5
"""The merchants of each cell."""
DAYS_MS: Final = 90 * DAY_MS
PAGES: Final = (
    "/console",
    "/console/state",
    "/console/withdrawals",
    "/console/withdrawals/all",
    "/console/withdrawals/all?sort=amount",
    "/console/withdrawals/all?status=2&from={day}&to={day}",
    "/console/withdrawals/all?merchant={merchant_id}",
    "/console/withdrawals/all?id=o{number}",
    "/console/withdrawals/{order_id}",
    "/console/payouts",
    "/console/deposits",
    "/console/deposits?status=dropped",
    "/console/books",
    "/console/books/{merchant_id}",
    "/console/books/{merchant_id}/accounts/1",
    "/console/books/{merchant_id}/entries/{order_id}",
    "/console/merchants",
    "/console/merchants?sort=name",
    "/console/merchants/{merchant_id}",
    "/console/merchants/{merchant_id}/settings",
    "/console/merchants/{merchant_id}/users/{user_id}",
    "/console/sub-users",
    "/console/sub-users?q=p9&by=ext",
    "/console/sub-users?q=player+9&by=name",
    "/console/sub-users?q=p9",
    "/console/search?q=p9",
    "/console/search?q=o{number}",
    "/console/search/suggestions?q=p9",
    "/console/search/suggestions?q=p1234",
    "/console/search/suggestions?q=234",
    "/console/search/suggestions?q=999",
    "/console/search/suggestions?q=o{number}",
    "/console/search/suggestions?q=0x1234",
    "/console/search/suggestions?q=0x1234ab%E2%80%A69f00",
    "/console/search/suggestions?q=TAb1",
    "/console/search/suggestions?q=12345",
    "/console/search/suggestions?q=1234567",
    "/console/search/suggestions?q=101",
    "/console/search/suggestions?q=bench",
    "/console/search/suggestions?q=nothingatall",
    "/console/callbacks",
    "/console/callbacks?state=all",
    "/console/callbacks/evt_{paid_id}_2",
    "/console/adjustments",
    "/console/audit",
    "/console/finance",
    "/console/finance?period={month}",
    "/console/finance?period={month}&merchant={merchant_id}",
    "/console/finance/solvency",
    "/console/finance/solvency.csv?period={month}",
    "/console/finance/report.csv?period={month}",
    "/console/finance/report.pdf?period={month}",
    "/console/finance/months",
    "/console/finance/months/{month}",
    "/console/finance/invoices",
    "/console/finance/files",
)
"""The requested pages. The merchant is of the last cell. Finance is about the last month that has ended."""
FILES: Final = (
    "/console/finance/statement.pdf?period={month}&merchant={merchant_id}",
    "/console/finance/files/send?file=movements&merchant={merchant_id}&from={month}-10&to={month}-10",
    "/console/finance/files/send?file=postings&merchant={merchant_id}&from={month}-10&to={month}-10",
    "/console/finance/files/send?file=withdrawals&merchant={merchant_id}&from={month}-01&to={month}-28",
    "/console/finance/files/send?file=deposits&merchant={merchant_id}&from={month}-01&to={month}-28",
    "/console/finance/files/send?file=callbacks&merchant={merchant_id}&from={month}-01&to={month}-28",
    "/console/finance/files/send?file=audit&from={month}-01&to={month}-28",
)
"""Files, whose time is that of their rows. They have no goal."""
GOAL_MS: Final = 100.0

Say = Callable[[str], None]


class Size(msgspec.Struct, frozen=True):
    """How many cells there are, how many entries in all, and how often each page is asked for."""

    cells: int
    entries: int
    requests: int

    @property
    def of_merchant(self) -> int:
        """The entries of one book."""
        return self.entries // (self.cells * MERCHANTS)

    @property
    def users(self) -> int:
        """The sub-users of one book: one for 50 entries."""
        return self.of_merchant // 50


async def prepare(url: str, keyring: Keyring, size: Size, say: Say) -> dict[str, int | str]:
    """Add the cells and their merchants, and fill the books. What the pages' addresses are made of."""
    async with await db.connect(url) as home:
        cells = [await _add_cell(home, url, f"cell{number + 1}") for number in range(size.cells)]
    directory = Directory(url)
    made: dict[int, list[int]] = {}
    for cell_id in cells:
        made[cell_id] = [await _open(url, keyring, directory, cell_id) for _ in range(MERCHANTS)]
    say(f"{size.cells} cells with {MERCHANTS} merchants each")
    places = asyncio.Semaphore(2)
    await asyncio.gather(*[_fill_cell(directory, places, ids, size, say) for ids in made.values()])
    month = await _add_up(directory, say)
    await large.tidy(url)
    return {**await _choose(directory, made[cells[-1]][0], size), "month": month}


async def _add_up(directory: Directory, say: Say) -> str:
    """Add all entries up, as the worker does, and prepare the month that has ended. Its name."""
    connections = CellConnections(directory.connect_home, directory)
    try:
        databases = await connections.get()
        began_s = time.perf_counter()
        for cell in databases.cells:
            await _add_up_cell(cell)
        say(f"movements of all entries added up in {time.perf_counter() - began_s:.1f} s")
        month = previous_month(month_of(now_ms()))
        began_s = time.perf_counter()
        made = await months.prepare(databases, month, now_ms())
        say(f"{made.month} of {made.books} books prepared in {time.perf_counter() - began_s:.2f} s")
        return month.name
    finally:
        await connections.close()


async def _add_up_cell(cell: store.Connection) -> None:
    """Add the movements of entries whose figures were written with them."""
    rows = await (await cell.execute(QUERIES["list_cursors"].text)).fetchall()
    values = {
        "merchant_ids": [merchant_id for merchant_id, _ in rows],
        "entry_ids": [0] * len(rows),
        "last_ids": [last_id for _, last_id in rows],
        "last_fixed": LAST_FIXED_ID,
    }
    await cell.execute(rollup.QUERIES["add_movements"].text.encode(), values)


async def _add_cell(home: store.Connection, url: str, name: str) -> int:
    cell = adding.NewCell(name, name, None, url)
    async with adding.locked(home):
        added = await adding.add_cell(home, cell, now_ms(), lambda _: None)
        assert added is not None, "the database is new"
        async with home.transaction():
            await adding.insert_cell(home, added, now_ms())
        await adding.finish(cell)
    return added.cell_id


async def _open(url: str, keyring: Keyring, directory: Directory, cell_id: int) -> int:
    async with await db.connect(url) as home:
        made = await store.create(
            home,
            keyring,
            f"bench {now_ms()}-{cell_id}",
            seed=keyring.sandbox_seed(),
            at_ms=now_ms(),
            cell_id=cell_id,
        )
    await find_and_carry(directory, made.merchant.merchant_id)
    return made.merchant.merchant_id


async def _fill_cell(
    directory: Directory, places: asyncio.Semaphore, merchant_ids: list[int], size: Size, say: Say
) -> None:
    async with places, await directory.connect(await directory.find(merchant_ids[0])) as cell:
        for merchant_id in merchant_ids:
            await _fill(cell, merchant_id, size)
        say(f"{size.of_merchant * MERCHANTS:,} entries in a cell")


async def _fill(cell: store.Connection, merchant_id: int, size: Size) -> None:
    at_ms = now_ms()
    values = {
        "merchant_id": merchant_id,
        "entries": size.of_merchant,
        "users": size.users,
        "now_ms": at_ms,
        "first_ms": at_ms - DAYS_MS,
        "step_ms": DAYS_MS // size.of_merchant,
    }
    async with cell.transaction():
        for query in QUERIES.values():
            await cell.execute(query.text.encode(), values)


async def _choose(directory: Directory, merchant_id: int, size: Size) -> dict[str, int]:
    """An order that waits, and one that was paid, both of one merchant."""
    async with await directory.connect(await directory.find(merchant_id)) as cell:
        row = await (
            await cell.execute(
                b"select max(order_id) filter (where status = 0), max(order_id) filter (where status = 2),"
                b" min(user_id) from withdrawal join sub_user using (merchant_id)"
                b" where merchant_id = %s and address_index = 1",
                (merchant_id,),
            )
        ).fetchone()
    assert row is not None
    number = size.of_merchant // 100 * 100
    return {
        "merchant_id": merchant_id,
        "order_id": row[0],
        "paid_id": row[1],
        "user_id": row[2],
        "number": number,
    }


def measure(service: RunningService, keyring: Keyring, size: Size, say: Say) -> list[PageTime]:
    """Fill the cells, and time each page."""
    url = service.database_url
    assert url is not None
    places = asyncio.run(prepare(url, keyring, size, say))
    token = asyncio.run(sign_in(url))
    day = "2026-01-01"
    times = []
    for path in (*PAGES, *FILES):
        one = time_page(service, token, path.format(**places, day=day), size.requests)
        say(one.describe())
        if path in PAGES:
            times.append(one)
    return times


def main(
    quick: Annotated[bool, typer.Option("--quick", help="With small books.")] = False,
    cells: Annotated[int, typer.Option(min=1, help="How many cells.")] = 8,
    entries: Annotated[int, typer.Option(min=10_000, help="Entries in all cells together.")] = 5_000_000,
    requests: Annotated[int, typer.Option(min=1, help="How often each page is asked for.")] = 100,
    work: Annotated[Path | None, typer.Option(metavar="DIR", help="A folder on the disk to use.")] = None,
) -> None:
    """Measure the console's pages over several cells."""
    size = Size(cells, 80_000, 20) if quick else Size(cells, entries, requests)
    with tempfile.TemporaryDirectory(prefix="merchant-wallet-bench-", dir=work) as name:
        folder = Path(name)
        folder.chmod(0o711)
        with open_service(CONSOLE_SCRIPT, folder / "data", folder / "service.log") as service:
            keyring = Keyring(load_or_create_master_key(folder / "data"))
            times = measure(service, keyring, size, partial(print, flush=True))
    slow = [one.path for one in times if one.failures or one.p50_ms > GOAL_MS]
    print(f"{len(times) - len(slow)} of {len(times)} pages within {GOAL_MS:.0f} ms (p50)")
    if slow:
        print(f"slower: {', '.join(slow)}")


if __name__ == "__main__":
    typer.run(main)
