"""The console over a large book: the time for each page, and what browsing costs the transfers. `python -m
bench.pages` runs only this, `--quick` with a small book.

Rules: the book and its sub-users are made by the book's own writer, and the figures are added up first. Pages
are requested one after the other on one connection with a session. A page with a status other than 200 is
named and not counted. The cost for transfers is measured within one run, by the entries committed in windows
with and without a visitor.
"""

import asyncio
import http.client
import itertools
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec
import typer

from bench import large
from bench.goals import PAGE_P99, PAGES_SHARE, PAGES_SHARE_HIGH, PAGES_SHARE_LOW
from bench.merchants import (
    LARGE,
    BenchMerchant,
    Progress,
    prepare_merchants,
    write_merchants,
)
from bench.meters import compute_percentile
from bench.pairs import Pair, judge_pairs, take_pairs
from bench.rows import LoadGenerator, Plan
from bench.service import CONSOLE_SCRIPT, RunningService, open_service
from bench.signed_requests import DEBIT, RequestWriter, find_memory
from bench.writers import ask, open_writer
from bench.wrk import find_wrk
from merchant_wallet.base import db
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.config import load_or_create_master_key
from merchant_wallet.base.currencies import KFB
from merchant_wallet.book.chart import MERCHANT_KFB_ID
from merchant_wallet.book.commands import Command, Register
from merchant_wallet.merchants import store
from merchant_wallet.merchants.issued_addresses import issue_address
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.operators import records, sessions
from merchant_wallet.reporting import rollup

PAGES: Final = (
    "/console",
    "/console/state",
    "/console/withdrawals",
    "/console/withdrawals/all",
    "/console/withdrawals/all?sort=amount",
    "/console/deposits",
    "/console/books",
    "/console/books/{merchant_id}",
    "/console/books/{merchant_id}/accounts/{account_id}",
    "/console/merchants",
    "/console/merchants/{merchant_id}",
    "/console/merchants/{merchant_id}/settings",
    "/console/merchants/{merchant_id}/rates",
    "/console/merchants/{merchant_id}/refusals",
    "/console/sub-users",
    "/console/sub-users?q=p9",
    "/console/search?q=p9",
    "/console/callbacks",
    "/console/rates",
    "/console/adjustments",
    "/console/reconciliation",
    "/console/operators",
    "/console/account",
    "/console/audit",
    "/console/debugger",
    "/console/finance",
    "/console/finance?merchant={merchant_id}",
    "/console/finance/solvency",
    "/console/finance/report.pdf?merchant={merchant_id}",
    "/console/finance/statement.pdf?merchant={merchant_id}",
    "/console/finance/months",
    "/console/finance/invoices",
    "/console/finance/files",
)
"""The requested pages. `{merchant_id}` is the large book's, `{account_id}` its busiest account."""
COOKIE: Final = "console_session"
PREFIX: Final = "pages"
PAUSE_S: Final = 0.5
"""The pause between two pages of the visitor while transfers run."""
ALONE_S: Final = 5
LEAD_S: Final = 2.0
WINDOW_S: Final = 1.0
"""Long enough for two pages and a hundred commits, and short enough that the machine's speed stays the
same within a pair.
"""
SPARE: Final = 1.3
"""What is signed for the run, by the speed of the one before it."""
CONNECTIONS: Final = 64
BATCH_SIZE: Final = 1000
SIGNERS: Final = 2

Say = Callable[[str], None]
Visit = Callable[[], AbstractContextManager[None]]
"""Somebody who goes through the pages for as long as the block lasts."""


class Size(msgspec.Struct, frozen=True):
    """How large the book is, how often each page is asked for, and how long transfers run beside pages."""

    entries: int
    sub_users: int
    requests: int
    seconds: int


FULL: Final = Size(5_000_000, 100_000, 100, 120)
SMALL: Final = Size(10_000, 1_000, 20, 20)


class PageTime(msgspec.Struct, frozen=True):
    """How long one page took; `failures` counts the answers that were not 200 by their status."""

    path: str
    least_ms: float
    p50_ms: float
    p99_ms: float
    failures: dict[int, int]

    def describe(self) -> str:
        """The line that a person reads."""
        if self.failures:
            return f"{PREFIX}{self.path}: not measured, answered {', '.join(map(str, self.failures))}"
        return (
            f"{PREFIX}{self.path}: {self.p50_ms:.1f} ms (p50), {self.p99_ms:.1f} ms (p99),"
            f" {self.least_ms:.1f} ms (least)"
        )


def measure(
    service: RunningService,
    merchant: BenchMerchant,
    load_generator: LoadGenerator,
    size: Size,
    say: Say,
    progress: Progress,
) -> dict[str, float]:
    """Make the book as large as asked for and measure; the figures that no single row holds."""
    url = service.database_url
    assert url is not None
    asyncio.run(_prepare(url, merchant, size, progress))
    token = asyncio.run(sign_in(url))
    paths = [path.format(merchant_id=merchant.merchant_id, account_id=MERCHANT_KFB_ID) for path in PAGES]
    times = [time_page(service, token, path, size.requests) for path in paths]
    for one in times:
        say(one.describe())
    answered = [one for one in times if not one.failures]
    figures = {PAGE_P99: max(one.p99_ms for one in answered)} if answered else {}
    if answered:
        stroll = itertools.cycle([one.path for one in answered])
        figures |= _measure_share(
            service, merchant, load_generator, size, lambda: _visitor(service, token, stroll), say
        )
    return figures


def _measure_share(
    service: RunningService,
    merchant: BenchMerchant,
    load_generator: LoadGenerator,
    size: Size,
    visit: Visit,
    say: Say,
) -> dict[str, float]:
    """The speed of transfers beside page views as a share of their speed alone, and its interval."""
    url = service.database_url
    assert url is not None
    pairs: list[Pair] = []

    def watch(is_running: Callable[[], bool]) -> None:
        pairs.extend(asyncio.run(_watch(url, merchant.merchant_id, visit, is_running)))

    alone = load_generator.measure(service, _plan("alone", ALONE_S))
    requests = int(alone.rate * size.seconds * SPARE)
    row = load_generator.measure_watched(service, _plan("beside pages", size.seconds), requests, watch)
    if row.failures or len(pairs) < 2:
        say(f"{PREFIX}: their cost was not measured, {row.failures} failures, {len(pairs)} pairs of windows")
        return {}
    found = judge_pairs(pairs)
    say(f"{PREFIX}: transfers beside pages, share of their speed alone {found.describe()}")
    return {PAGES_SHARE: found.share, PAGES_SHARE_LOW: found.low, PAGES_SHARE_HIGH: found.high}


async def _watch(url: str, merchant_id: int, visit: Visit, is_running: Callable[[], bool]) -> list[Pair]:
    """Pairs of speeds, from the entries that the book has before and after each window."""
    async with await db.connect(url) as connection:

        async def read_speed() -> float:
            before, began_s = await large.count_entries(connection, merchant_id), time.perf_counter()
            await asyncio.sleep(WINDOW_S)
            after = await large.count_entries(connection, merchant_id)
            return (after - before) / (time.perf_counter() - began_s)

        await asyncio.sleep(LEAD_S)
        return await take_pairs(read_speed, visit, is_running)


def _plan(name: str, seconds: int) -> Plan:
    return Plan(f"{PREFIX}/transfers {name}", LARGE, DEBIT, CONNECTIONS, seconds)


async def _prepare(url: str, merchant: BenchMerchant, size: Size, progress: Progress) -> None:
    await _register(url, merchant, size.sub_users, progress)
    await large.fill_book(url, merchant, size.entries, progress)
    await large.tidy(url)
    async with await db.connect(url) as conn:
        shares = {merchant.merchant_id: rollup.BATCH_SIZE}
        while added := await rollup.advance(conn, shares, now_ms()):
            progress("entries in the figures, this time", added, rollup.BATCH_SIZE)
        await rollup.advance_all(conn, now_ms(), pause_s=0)


async def _register(url: str, merchant: BenchMerchant, upto: int, progress: Progress) -> None:
    """Register sub-users until the book has `upto`. Only the first ones pay."""
    async with (
        open_writer(url, connections=1, queue_limit=2 * BATCH_SIZE, batch_limit=BATCH_SIZE) as writer,
        await db.connect(url) as conn,
    ):
        for first in range(len(merchant.sub_users), upto, BATCH_SIZE):
            numbers = range(first, min(first + BATCH_SIZE, upto))
            commands = [await _registration(conn, merchant, f"p{number}") for number in numbers]
            await ask(writer, merchant.merchant_id, commands)
            progress("sub-users", numbers.stop, upto)


async def _registration(conn: store.Connection, merchant: BenchMerchant, ext_user_id: str) -> Command:
    return Register(
        ext_user_id, KFB, *await issue_address(conn, merchant.merchant_id, merchant.account_xpubs)
    )


async def sign_in(url: str) -> str:
    """The token of an owner's session that has passed both factors."""
    async with await db.connect(url) as conn:
        name = f"bench-{now_ms()}"
        # One that was handed over would have to be changed first.
        own = "three quiet lighthouse keepers"
        made = await records.create(conn, name, "owner", password=own, at_ms=now_ms())
        return await sessions.open_session(
            conn,
            made.operator.operator_id,
            totp_passed=True,
            source="127.0.0.1",
            user_agent="bench",
            at_ms=now_ms(),
        )


def time_page(service: RunningService, token: str, path: str, requests: int) -> PageTime:
    """Ask for a page so often, after once that doesn't count."""
    took_ms: list[float] = []
    failures: dict[int, int] = {}
    with _browser(service) as browser:
        for number in range(requests + 1):
            began_s = time.perf_counter()
            status = _get(browser, token, path)
            if number:
                took_ms.append((time.perf_counter() - began_s) * 1000)
            if status != http.client.OK:
                failures[status] = failures.get(status, 0) + 1
    p50, p99 = compute_percentile(took_ms, 50), compute_percentile(took_ms, 99)
    return PageTime(path, min(took_ms), p50, p99, failures)


@contextmanager
def _browser(service: RunningService) -> Iterator[http.client.HTTPConnection]:
    where = urlsplit(service.address)
    browser = http.client.HTTPConnection(where.hostname or "127.0.0.1", where.port, timeout=30)
    try:
        yield browser
    finally:
        browser.close()


def _get(browser: http.client.HTTPConnection, token: str, path: str) -> int:
    browser.request("GET", path, headers={"Cookie": f"{COOKIE}={token}", "Accept": "text/html"})
    answer = browser.getresponse()
    answer.read()
    return answer.status


@contextmanager
def _visitor(service: RunningService, token: str, paths: Iterator[str]) -> Iterator[None]:
    """Somebody who goes through the pages, from where the last one was, until the block ends.

    A page that is under way then is waited for, so that it costs nobody later.
    """
    over = threading.Event()

    def visit() -> None:
        with _browser(service) as browser:
            while not over.is_set():
                _get(browser, token, next(paths))
                over.wait(PAUSE_S)

    visitor = threading.Thread(target=visit)
    visitor.start()
    try:
        yield
    finally:
        over.set()
        visitor.join()


def main(quick: Annotated[bool, typer.Option("--quick", help="With a small book.")] = False) -> None:
    """Measure the console's pages alone."""
    wrk, size = find_wrk(print), SMALL if quick else FULL
    with (
        tempfile.TemporaryDirectory(prefix="merchant-wallet-bench-") as name,
        tempfile.TemporaryDirectory(prefix="merchant-wallet-bench-", dir=find_memory()) as slices,
    ):
        folder = Path(name)
        folder.chmod(0o711)
        with open_service(CONSOLE_SCRIPT, folder / "data", folder / "service.log") as service:
            assert service.database_url is not None
            keyring = Keyring(load_or_create_master_key(folder / "data"))
            merchant_set = asyncio.run(
                prepare_merchants(service.database_url, keyring, [LARGE], lambda *_: None)
            )
            write_merchants(merchant_set, folder / "merchants.json")
            request_writer = RequestWriter(folder / "merchants.json", Path(slices), SIGNERS)
            try:
                load_generator = LoadGenerator(
                    wrk, request_writer, lambda row: print(f"{row.name}: {row.rate:,.0f} a second")
                )
                (merchant,) = merchant_set.populations[LARGE]
                print(measure(service, merchant, load_generator, size, print, lambda *_: None))
            finally:
                request_writer.close()


if __name__ == "__main__":
    typer.run(main)
