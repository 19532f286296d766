"""Watcher and crediting worker that tests kill at a point, inside the test's process or in one of their own.

The chain is the sandbox's; its transfers are final at once. A point is `before` or `after`, then a call to
the chain, the book or a store, then a count: `after transfers 2`.
"""

import asyncio
from collections import Counter
from functools import partial
from typing import Final

import pytest
from tests.crash_points import IsDue, OwnProcess, around, make_step
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

IDLE_TURNS = 2
"""Then nothing is left to do."""
COMMITS: Final = (
    (chain_store, "move_final"),
    (deposit_store, "settle"),
    (chain_store, "mark_taken"),
    (chain_store, "record_credits"),
)
"""The functions that commit, one after the other, on the way from a final block to its credit."""


def at(point: str) -> IsDue:
    """Recognises a point."""
    seen: Counter[str] = Counter()

    def is_due(when: str, step: str) -> bool:
        here = f"{when} {step}"
        seen[here] += 1
        return point == f"{here} {seen[here]}"

    return is_due


class KillableReader(SandboxReader):
    """The sandbox's chain. The program may die before or after its calls."""

    async def final(self) -> Block:
        return await around("final", super().final)

    async def transfers(self, first: int, last: int) -> list[TokenTransfer]:
        return await around("transfers", partial(super().transfers, first, last))


class KillableBook:
    """A book. The program may die before or after its calls."""

    def __init__(self, book: Writer) -> None:
        self.book = book

    async def submit(self, merchant_id: int, submission: Submission) -> Outcome:
        return await around("credit", lambda: self.book.submit(merchant_id, submission))


def _watch_commits(patch: pytest.MonkeyPatch) -> None:
    """Have the program die before or after calls of the functions that commit."""
    for module, name in COMMITS:
        patch.setattr(module, name, make_step(name, getattr(module, name)))


async def work(home_url: str, url: str) -> None:
    """Watch and credit until nothing is left to do."""
    connect_home, connect_cell = partial(connect, home_url), partial(connect, url)
    if home_url == url:
        connect_cell = connect_home
    worker_connection = WorkerConnection(connect_home)
    reader = KillableReader("ERC20", SandboxDeposits(worker_connection), confirm_ms=0, clock=lambda: START_MS)
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
    crediting_worker = CreditingWorker(connect_home, connect_cell, KillableBook(book), clock=lambda: START_MS)
    try:
        with pytest.MonkeyPatch.context() as patch:
            _watch_commits(patch)
            idle = 0
            while idle < IDLE_TURNS:
                followed = await watcher.follow()
                credited = await crediting_worker.credit_due()
                idle = 0 if followed or credited else idle + 1
    finally:
        for opened in (watcher, crediting_worker, book, worker_connection):
            await opened.close()


def main(home_url: str, url: str, point: str) -> None:
    """What the fork server runs."""
    asyncio.run(OwnProcess(at(point)).run_to_death(work(home_url, url)))
