"""A payer in its own process that kills or stops itself by a signal at a given point. Tests start it.

Arguments: the URLs of home and of the book's cell, the clock's time in ms, the point, the signal's name, and
the folder that says which chains to use (see `make_chains`), or `sandbox`. A point is `before` or `after`,
then a method of the chain, a command to the book or one of `STATEMENTS`, then a count if it is not the first
time in this process: `after build 2`.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from psycopg import AsyncConnection
from tests.withdrawals import real_chains
from tests.withdrawals.fake_chains import KINDS, open_fake

from merchant_wallet.base.db import Cursor, connect
from merchant_wallet.base.workers import Connect, WorkerConnection
from merchant_wallet.book.commands import Submission
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.writer import Writer
from merchant_wallet.chains.protocol import Chain, Payout, SignedTransfer, Transfer, Verdict
from merchant_wallet.chains.sandbox.chain import SandboxChain
from merchant_wallet.withdrawals.payer import Payer
from merchant_wallet.withdrawals.payouts import QUERIES
from merchant_wallet.withdrawals.sandbox_ledger import SandboxLedger

TURNS = 24
STATEMENTS = {
    QUERIES[name].text.encode(): name
    for name in ("list_unqueued", "queue_orders", "mark_queued", "claim", "read_order", "release")
}
"""The statements of the queue, by their texts."""

Answer = TypeVar("Answer")


class KillPoint:
    """Sends this process the signal at the given point. A stopped process may be resumed."""

    def __init__(self, point: str, signal_name: str) -> None:
        self.point = point
        self.signal = signal.Signals[signal_name]
        self.seen: Counter[str] = Counter()

    def __call__(self, here: str) -> None:
        self.seen[here] += 1
        number = self.seen[here]
        if self.point == (here if number == 1 else f"{here} {number}"):
            os.kill(os.getpid(), self.signal)

    async def around(self, what: str, asked: Awaitable[Answer]) -> Answer:
        self(f"before {what}")
        answer = await asked
        self(f"after {what}")
        return answer


class KillableChain:
    def __init__(self, chain: Chain, kill_point: KillPoint) -> None:
        self.chain = chain
        self.kill_point = kill_point
        self.wallet = chain.wallet
        self.has_nonces = chain.has_nonces

    async def next_nonce(self, known: int | None, *, is_first: bool) -> int:
        return await self.kill_point.around("next_nonce", self.chain.next_nonce(known, is_first=is_first))

    async def funds(self) -> int:
        return await self.kill_point.around("funds", self.chain.funds())

    async def check_payable(self, transfer: Transfer) -> None:
        await self.kill_point.around("check_payable", self.chain.check_payable(transfer))

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        return await self.kill_point.around("build", self.chain.build(payout, earlier))

    async def build_cancel(self, nonce: int, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        return await self.kill_point.around("build_cancel", self.chain.build_cancel(nonce, earlier))

    async def broadcast(self, raw: bytes) -> None:
        await self.kill_point.around("broadcast", self.chain.broadcast(raw))

    async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        return await self.kill_point.around("judge", self.chain.judge(payout, signed))


class KillableBook:
    def __init__(self, book: Writer, kill_point: KillPoint) -> None:
        self.book = book
        self.kill_point = kill_point

    async def submit(self, merchant_id: int, submission: Submission) -> Outcome:
        name = type(submission.command).__name__
        return await self.kill_point.around(name, self.book.submit(merchant_id, submission))


def make_chains(url: str, where: str, now: list[int]) -> Mapping[str, Chain]:
    """The real chains if the folder names them, else the folder's fake chains, or the sandbox's."""
    if (Path(where) / real_chains.NAME).exists():
        return real_chains.open_real(Path(where))
    if where != "sandbox":
        return {name: open_fake(kind, Path(where) / kind) for kind, (_, name) in KINDS.items()}
    ledger, seed = SandboxLedger(WorkerConnection(partial(connect, url))), bytes(range(64))
    make = partial(SandboxChain, ledger=ledger, seed=seed, confirm_ms=1_500, clock=lambda: now[0])
    return {name: make(name) for name in ("ERC20", "TRC20")}


class KillableCursor(Cursor):
    """Sees the statements of the queue. Each of them commits by itself."""

    kill_point: KillPoint

    async def execute(self, *arguments: Any, **options: Any) -> "KillableCursor":
        name = STATEMENTS.get(arguments[0])
        if name is None:
            await super().execute(*arguments, **options)
        else:
            await self.kill_point.around(name, super().execute(*arguments, **options))
        return self


def make_connect(url: str, kill_point: KillPoint) -> Connect:
    async def open_killable() -> AsyncConnection:
        connection = await connect(url)
        KillableCursor.kill_point = kill_point
        connection.cursor_factory = KillableCursor
        return connection

    return open_killable


async def pay_until_killed(
    url: str, book_url: str, now_ms: int, point: str, signal_name: str, where: str
) -> None:
    """Pay what is due. The clock advances between turns."""
    kill_point, now = KillPoint(point, signal_name), [now_ms]
    book = Writer(book_url, connections=2, clock=lambda: now[0])
    await book.open()
    chains = {name: KillableChain(chain, kill_point) for name, chain in make_chains(url, where, now).items()}
    apart: dict[str, Any] = {"connect_cell": make_connect(book_url, kill_point), "cell_id": 1}
    payer = Payer(
        make_connect(url, kill_point),
        KillableBook(book, kill_point),
        chains,
        clock=lambda: now[0],
        **({} if book_url == url else apart),
    )
    for _ in range(TURNS):
        await payer.start_due()
        await payer.finish()
        now[0] += 1_500
    await payer.close()
    await book.close()


def main(url: str, book_url: str, now_ms: str, point: str, signal_name: str, where: str) -> None:
    """What the fork server runs."""
    asyncio.run(pay_until_killed(url, book_url, int(now_ms), point, signal_name, where))
