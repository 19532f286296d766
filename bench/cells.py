"""How much cells give: `python -m bench.cells`. Transfers of 1,000 merchants in the writers, without HTTP.

- `machines`: two clusters with a writer process each, every pair pinned to a processor of its own, against
  one such pair with all merchants. So one processor stands for one machine.
- `schema`: the same merchants' books in an apart schema of home's database, against home's own schema.
- `down`: a cell alone, and while as many callers of the same process ask for merchants of a killed cell.

Rules: fsync is on. Windows of both kinds take turns in random order (see `pairs`), so both see the same
machine. A process of writers is this module with a URL; it is told what to do on standard input.
"""

import asyncio
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
import typer
import uvloop

from bench.database import COIN, KEYRING
from bench.meters import read_machine_busy
from bench.pairs import Pair, draw_turns, judge_pairs
from merchant_wallet import postgres
from merchant_wallet.base import db
from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB
from merchant_wallet.base.settings import make_settings
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import Adjust, Register, Submission, UserToMerchant
from merchant_wallet.book.errors import CommandFailed, Unavailable
from merchant_wallet.book.nonce_partitions import open_nonce_days
from merchant_wallet.merchants import store
from merchant_wallet.merchants.cells import adding, carrying
from merchant_wallet.merchants.cells.directory import Directory
from merchant_wallet.merchants.cells.writers import CellWriters
from merchant_wallet.merchants.issued_addresses import issue_address
from merchant_wallet.observability import logs
from merchant_wallet.postgres.migrate import migrate
from merchant_wallet.processes.base import Base, make_writer

MERCHANTS: Final = 1000
CALLERS: Final = 256
"""Commands of one process that are under way at once."""
SUB_USER: Final = "u0"
AMOUNT_UNITS: Final = 10_000
FUNDS_UNITS: Final = 10_000_000 * COIN
WINDOW_S: Final = 5.0
PAIRS: Final = 6
REFUSED_PAUSE_S: Final = 0.5
"""A refused caller asks again after this pause."""
LOADER: Final = "loader"


class Order(msgspec.Struct):
    """What a process of writers shall do: transfers of these merchants for some seconds."""

    merchants: tuple[int, int]
    """The first merchant's id and the one after the last."""
    seconds: float
    beside: tuple[int, int] | None = None
    """Other callers ask for these merchants meanwhile. Their cell is away."""


class Done(msgspec.Struct):
    """What it did. `refused` are the commands whose cell was away."""

    transfers: int
    refused: int = 0


class Caller:
    """Sends transfers of random merchants, one after the other."""

    def __init__(self, writers: CellWriters, merchants: tuple[int, int], seconds: float) -> None:
        self._writers = writers
        self._merchants = merchants
        self._seconds = seconds
        self._draw = random.Random(secrets.token_hex(8))
        self._prefix = secrets.token_hex(6)
        self.done = Done(0)

    async def run(self) -> None:
        """Send until the time is over."""
        end_s = time.perf_counter() + self._seconds
        number = 0
        while time.perf_counter() < end_s:
            number += 1
            name = f"{self._prefix}{number:x}"
            merchant_id = self._draw.randrange(*self._merchants)
            try:
                outcome = await self._writers.submit(merchant_id, _transfer(name))
            except (Unavailable, CommandFailed):
                self.done.refused += 1
                await asyncio.sleep(REFUSED_PAUSE_S)
                continue
            assert not isinstance(outcome, Refusal), outcome
            self.done.transfers += 1


def _transfer(name: str) -> Submission:
    return Submission(UserToMerchant(name, SUB_USER, KFB, AMOUNT_UNITS, 0, False), name)


CellUrls = Sequence[tuple[str, str]]
"""URLs of apart cells by name. Each cluster has users with passwords of its own."""


def _open_writers(url: str, cell_urls: CellUrls) -> CellWriters:
    values = {"database_url": url, "master_key": bytes(32), "cell_urls": tuple(cell_urls)}
    return make_writer(Base(make_settings(values), url, KEYRING))


async def _load(url: str, cell_urls: CellUrls) -> None:
    """The process of writers: an order on each line, and an answer for each."""
    logs.set_up("error", None)
    writers = _open_writers(url, cell_urls)
    await writers.open()
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = msgspec.json.decode(line, type=Order)
        groups = [order.merchants] if order.beside is None else [order.merchants, order.beside]
        callers = [Caller(writers, group, order.seconds) for group in groups for _ in range(CALLERS)]
        await asyncio.gather(*(caller.run() for caller in callers))
        done = Done(
            sum(caller.done.transfers for caller in callers), sum(caller.done.refused for caller in callers)
        )
        print(msgspec.json.encode(done).decode(), flush=True)
    await writers.close()


class Loader:
    """A process of writers, as this process sees it."""

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self._child = child

    def begin(
        self, merchants: tuple[int, int], seconds: float, beside: tuple[int, int] | None = None
    ) -> None:
        """Let it send transfers."""
        assert self._child.stdin is not None
        self._child.stdin.write(msgspec.json.encode(Order(merchants, seconds, beside)).decode() + "\n")
        self._child.stdin.flush()

    def end(self) -> Done:
        """Wait until it is done."""
        assert self._child.stdout is not None
        return msgspec.json.decode(self._child.stdout.readline(), type=Done)


@contextmanager
def pinned(cores: set[int] | None) -> Iterator[None]:
    """Processes that are started here run on these processors alone."""
    before = os.sched_getaffinity(0)
    if cores is not None:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def open_cluster(folder: Path, cores: set[int] | None = None) -> Iterator[postgres.RunningPostgres]:
    """A cluster, stopped at the end."""
    folder.mkdir()
    with pinned(cores):
        running = postgres.start(folder, lambda _: None)
    try:
        yield running
    finally:
        running.stop()


@contextmanager
def open_loader(url: str, cores: set[int] | None = None, cell_urls: CellUrls = ()) -> Iterator[Loader]:
    """A process of writers, ended at the end."""
    command = [sys.executable, "-m", "bench.cells", LOADER, url, msgspec.json.encode(cell_urls).decode()]
    with (
        pinned(cores),
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child,
    ):
        try:
            yield Loader(child)
        finally:
            child.terminate()


async def add_cell(home_url: str, name: str, url: str | None) -> int:
    """Add an apart cell as `cell add` does. Without `url` it is a schema of home's database."""
    address = None if url is None else db.strip_identity(url)
    cell = adding.NewCell(name, name, address, url or home_url)
    async with await db.connect(home_url) as home, adding.locked(home):
        added = await adding.add_cell(home, cell, now_ms(), lambda _: None)
        assert added is not None
        await adding.insert_cell(home, added, now_ms())
        await adding.finish(cell)
    return added.cell_id


async def make_merchants(url: str, cell_id: int, count: int, cell_urls: CellUrls = ()) -> tuple[int, int]:
    """Merchants with a sub-user each who has funds. Returns the first id and the one after the last."""
    await open_nonce_days(url, now_ms() // DAY_MS)
    made: list[int] = []
    writers, directory = _open_writers(url, cell_urls), Directory(url, dict(cell_urls))
    await writers.open()
    async with await db.connect(url) as home:
        for number in range(count):
            new = await store.create(
                home,
                KEYRING,
                f"bench {cell_id} {number}",
                seed=KEYRING.sandbox_seed(),
                at_ms=now_ms(),
                cell_id=cell_id,
            )
            merchant = new.merchant
            issued = await issue_address(home, merchant.merchant_id, merchant.account_xpubs)
            if cell_id != DEFAULT_CELL_ID:
                await carrying.find_and_carry(directory, merchant.merchant_id)
            funds = Adjust(KFB, FUNDS_UNITS, "funds for a measurement", "bench", SUB_USER)
            for command in (Register(SUB_USER, KFB, *issued), funds):
                outcome = await writers.submit(merchant.merchant_id, Submission(command))
                assert not isinstance(outcome, Refusal), outcome
            made.append(merchant.merchant_id)
    await writers.close()
    assert made == list(range(made[0], made[0] + count))
    return made[0], made[-1] + 1


class Part(NamedTuple):
    """A process of writers with its merchants, and those of a cell that is away."""

    loader: Loader
    merchants: tuple[int, int]
    beside: tuple[int, int] | None = None


Load = Sequence[Part]


def measure(load: Load, seconds: float) -> float:
    """Transfers a second of all processes together."""
    for loader, merchants, beside in load:
        loader.begin(merchants, seconds, beside)
    return sum(part.loader.end().transfers for part in load) / seconds


def take_turns(one: Load, other: Load, pairs: int, seconds: float) -> list[Pair]:
    """Windows of both loads in random order. The first of each is not counted."""
    for load in (one, other):
        measure(load, seconds)
    found = []
    for turns, _ in zip(draw_turns(), range(pairs), strict=False):
        speeds = {turn: measure(other if turn else one, seconds) for turn in turns}
        found.append(Pair(speeds[False], speeds[True]))
    return found


def say(text: str) -> None:
    """A line of the report."""
    print(text, flush=True)


def report(name: str, pairs: Sequence[Pair], goal: float) -> bool:
    """Print what the pairs show, and whether the goal is met."""
    for pair in pairs:
        say(f"  {pair.alone:8,.0f} {pair.beside:8,.0f}  {pair.beside / pair.alone:.2f}")
    share = judge_pairs(pairs)
    say(f"{name}: {share.describe()}; the goal is {goal:g}: {'met' if share.share >= goal else 'MISSED'}")
    return share.share >= goal


def measure_machines(folder: Path, merchants: int, pairs: int, seconds: float) -> bool:
    """Two machines against one."""
    say("machines: transfers a second on one pinned cluster, on two, and the ratio")
    with ExitStack() as stack:
        first = stack.enter_context(open_cluster(folder / "first", {0}))
        second = stack.enter_context(open_cluster(folder / "second", {1}))
        migrate(first.url, lambda _: None)
        cell_id = uvloop.run(add_cell(first.url, "second", second.url))
        here = uvloop.run(make_merchants(first.url, DEFAULT_CELL_ID, merchants))
        urls = [("second", second.url)]
        there = uvloop.run(make_merchants(first.url, cell_id, merchants // 2, urls))
        one = stack.enter_context(open_loader(first.url, {0}))
        two = stack.enter_context(open_loader(first.url, {1}, urls))
        half = (here[0], here[0] + merchants // 2)
        return report(
            "machines",
            take_turns([Part(one, here)], [Part(one, half), Part(two, there)], pairs, seconds),
            1.7,
        )


def measure_schema(folder: Path, merchants: int, pairs: int, seconds: float) -> bool:
    """An apart schema of home's database against home's own."""
    say("schema: transfers a second in home's schema, in an apart one, and the ratio")
    with ExitStack() as stack:
        cluster = stack.enter_context(open_cluster(folder / "schema"))
        migrate(cluster.url, lambda _: None)
        cell_id = uvloop.run(add_cell(cluster.url, "apart", None))
        here = uvloop.run(make_merchants(cluster.url, DEFAULT_CELL_ID, merchants))
        there = uvloop.run(make_merchants(cluster.url, cell_id, merchants))
        loader = stack.enter_context(open_loader(cluster.url))
        return report("schema", take_turns([Part(loader, here)], [Part(loader, there)], pairs, seconds), 0.97)


def measure_down(folder: Path, merchants: int, pairs: int, seconds: float) -> bool:
    """One cell's speed while callers of another one are refused, against its speed alone."""
    say("down: transfers a second of one cell alone, beside callers of a killed cell, and the ratio")
    with ExitStack() as stack:
        first = stack.enter_context(open_cluster(folder / "alive"))
        second = stack.enter_context(open_cluster(folder / "killed"))
        migrate(first.url, lambda _: None)
        cell_id = uvloop.run(add_cell(first.url, "killed", second.url))
        here = uvloop.run(make_merchants(first.url, DEFAULT_CELL_ID, merchants // 2))
        urls = [("killed", second.url)]
        there = uvloop.run(make_merchants(first.url, cell_id, merchants // 2, urls))
        loader = stack.enter_context(open_loader(first.url, cell_urls=urls))
        assert measure([Part(loader, there)], 1.0) > 0, "the cell answers at first"
        os.kill(second.pid, signal.SIGQUIT)
        beside = [Part(loader, here, there)]
        return report("down", take_turns([Part(loader, here)], beside, pairs, seconds), 0.95)


MEASUREMENTS: Final = {"machines": measure_machines, "schema": measure_schema, "down": measure_down}


def main(
    only: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"One of {', '.join(MEASUREMENTS)}.")
    ] = None,
    merchants: Annotated[int, typer.Option(min=2, help="How many merchants.")] = MERCHANTS,
    pairs: Annotated[int, typer.Option(min=2, help="How many pairs of windows.")] = PAIRS,
    seconds: Annotated[float, typer.Option(help="The length of a window.")] = WINDOW_S,
) -> None:
    """Measure what cells give. Exit status 1 if a goal was missed."""
    logs.set_up("error", None)
    is_met = True
    for name, measured in MEASUREMENTS.items():
        if only in (None, name):
            before = read_machine_busy()
            with tempfile.TemporaryDirectory(prefix="wallet-cells-") as folder:
                is_met &= measured(Path(folder), merchants, pairs, seconds)
            say(f"  the machine's host withheld {read_machine_busy().stolen_s - before.stolen_s:.1f} s")
    raise typer.Exit(0 if is_met else 1)


if __name__ == "__main__":
    if sys.argv[1:2] == [LOADER]:
        uvloop.run(_load(sys.argv[2], msgspec.json.decode(sys.argv[3], type=list[tuple[str, str]])))
    else:
        typer.run(main)
