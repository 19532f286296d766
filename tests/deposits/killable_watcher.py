"""Watcher and crediting worker in their own process, which is killed at a given point. Tests start it.

Arguments: URLs of home and cell, and the point. The chain is the sandbox's; its transfers are final at once.
A point is `before` or `after`, then a call to the chain, the book or a store, then a count:
`after transfers 2`.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable
from functools import partial
from types import ModuleType
from typing import Any, Final, TypeVar

from tests.deposits.conftest import MINIMUM, START_MS

from merchant_wallet.base.db import connect
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.book.commands import Submission
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.writer import Writer
from merchant_wallet.chains.protocol import Block, TokenTransfer
from merchant_wallet.chains.sandbox.reader import SandboxReader
from merchant_wallet.deposits import chain_store, deposit_store
from merchant_wallet.deposits.crediting import CreditingWorker
from merchant_wallet.deposits.sandbox_deposits import SandboxDeposits
from merchant_wallet.deposits.watcher import Watcher

Answer = TypeVar("Answer")
TURNS = 12
COMMITS: Final = (
    (chain_store, "move_final"),
    (deposit_store, "settle"),
    (chain_store, "mark_taken"),
    (chain_store, "record_credits"),
)
"""The functions that commit, one after the other, on the way from a final block to its credit."""


class KillPoint:
    """Kills this process at the given point."""

    def __init__(self, point: str) -> None:
        self.point = point
        self.seen: Counter[str] = Counter()

    def __call__(self, here: str) -> None:
        self.seen[here] += 1
        if self.point == f"{here} {self.seen[here]}":
            os.kill(os.getpid(), signal.SIGKILL)

    async def around(self, what: str, asked: Awaitable[Answer]) -> Answer:
        self(f"before {what}")
        answer = await asked
        self(f"after {what}")
        return answer


class KillableReader(SandboxReader):
    """The sandbox's chain. The process may die before or after its calls."""

    kill_point: KillPoint

    async def final(self) -> Block:
        return await self.kill_point.around("final", super().final())

    async def transfers(self, first: int, last: int) -> list[TokenTransfer]:
        return await self.kill_point.around("transfers", super().transfers(first, last))


class KillableBook:
    """A book. The process may die before or after its calls."""

    def __init__(self, book: Writer, kill_point: KillPoint) -> None:
        self.book = book
        self.kill_point = kill_point

    async def submit(self, merchant_id: int, submission: Submission) -> Outcome:
        return await self.kill_point.around("credit", self.book.submit(merchant_id, submission))


def kill_around(kill_point: KillPoint, module: ModuleType, name: str) -> None:
    """Have the process die before or after calls of a module's function."""
    run = getattr(module, name)

    async def run_around(*arguments: Any, **named: Any) -> Any:
        return await kill_point.around(name, run(*arguments, **named))

    setattr(module, name, run_around)


async def work_until_killed(home_url: str, url: str, point: str) -> None:
    """Watch and credit until nothing is left to do, or until killed."""
    connect_home, connect_cell = partial(connect, home_url), partial(connect, url)
    if home_url == url:
        connect_cell = connect_home
    worker_connection, kill_point = WorkerConnection(connect_home), KillPoint(point)
    for module, name in COMMITS:
        kill_around(kill_point, module, name)
    reader = KillableReader("ERC20", SandboxDeposits(worker_connection), confirm_ms=0, clock=lambda: START_MS)
    reader.kill_point = kill_point
    book = Writer(url, connections=2, clock=lambda: START_MS)
    await book.open()
    watcher = Watcher(
        connect_home,
        connect_cell,
        "ERC20",
        reader,
        minimum_units=MINIMUM,
        max_range_blocks=2,
        clock=lambda: START_MS,
    )
    crediting_worker = CreditingWorker(
        connect_home, connect_cell, KillableBook(book, kill_point), clock=lambda: START_MS
    )
    for _ in range(TURNS):
        await watcher.follow()
        await crediting_worker.credit_due()
    for opened in (watcher, crediting_worker, book, worker_connection):
        await opened.close()


def main(home_url: str, url: str, point: str) -> None:
    """What the fork server runs."""
    asyncio.run(work_until_killed(home_url, url, point))
