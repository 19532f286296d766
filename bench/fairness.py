"""How long one merchant's commands take in the writer while 4,000 of another merchant wait there. Without
HTTP.

Rules: each caller sends its next command when the last one is answered. So the crowd stays as large as it is.
"""

import asyncio
import random
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import uvloop

from bench.merchants import BenchMerchant
from bench.meters import compute_percentile
from bench.writers import PreparationFailed, open_writer
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB
from merchant_wallet.book.commands import Submission, UserToMerchant
from merchant_wallet.book.writer import Writer

CROWD: Final = 4000
LEAD_S: Final = 1
"""So long the crowd is there before anything is measured."""
AMOUNT_UNITS: Final = 10_000


class Waits(NamedTuple):
    """The single caller's 99th percentiles, and how many commands a second both merchants got together."""

    alone_p99_ms: float
    beside_p99_ms: float
    rate: float

    def describe(self) -> str:
        """The figures as text."""
        return (
            f"one command in the writer: p99 {self.alone_p99_ms:.1f} ms alone, "
            f"{self.beside_p99_ms:.1f} ms beside {CROWD:,} others, {self.rate:,.0f} a second"
        )


class Caller:
    """Sends commands of one merchant, one after the other."""

    def __init__(self, writer: Writer, merchant: BenchMerchant) -> None:
        self._writer = writer
        self._merchant = merchant
        self._prefix = secrets.token_hex(6)
        self._count = 0
        self._draw = random.Random(self._prefix)
        self.is_stopping = False

    async def call(self) -> float:
        """Send one command. Returns how long it took in ms. Raises PreparationFailed if it is refused."""
        self._count += 1
        name = f"{self._prefix}{self._count:x}"
        transfer = UserToMerchant(name, self._merchant.draw_name(self._draw), KFB, AMOUNT_UNITS, 0, False)
        began_s = time.perf_counter()
        outcome = await self._writer.submit(self._merchant.merchant_id, Submission(transfer, name))
        if isinstance(outcome, Refusal):
            raise PreparationFailed(f"a transfer was refused: {outcome.msg}")
        return (time.perf_counter() - began_s) * 1000

    async def call_for(self, seconds: float) -> list[float]:
        """Send commands for this time. Returns how long each took in ms."""
        end_s = time.perf_counter() + seconds
        took_ms = []
        while time.perf_counter() < end_s:
            took_ms.append(await self.call())
        return took_ms

    async def call_until_stopped(self) -> None:
        """Send commands until `is_stopping` is set."""
        while not self.is_stopping:
            await self.call()


def measure(url: str, single: BenchMerchant, other: BenchMerchant, seconds: float) -> Waits:
    """One caller alone, then beside the other merchant's crowd. Raises PreparationFailed."""
    return uvloop.run(_measure(url, single, other, seconds))


async def _measure(url: str, single: BenchMerchant, other: BenchMerchant, seconds: float) -> Waits:
    async with open_writer(url) as writer:
        caller = Caller(writer, single)
        alone_ms = await caller.call_for(seconds)
        async with _open_crowd(writer, other):
            await caller.call_for(LEAD_S)
            before = writer.command_count
            beside_ms = await caller.call_for(seconds)
            rate = (writer.command_count - before) / seconds
        return Waits(compute_percentile(alone_ms, 99), compute_percentile(beside_ms, 99), rate)


@asynccontextmanager
async def _open_crowd(writer: Writer, merchant: BenchMerchant) -> AsyncIterator[None]:
    """A crowd of callers, until the block ends."""
    crowd = [Caller(writer, merchant) for _ in range(CROWD)]
    calling = asyncio.gather(*[caller.call_until_stopped() for caller in crowd])
    try:
        yield
    finally:
        for caller in crowd:
            caller.is_stopping = True
        await calling
