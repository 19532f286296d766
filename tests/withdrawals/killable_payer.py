"""A payer that tests kill or freeze at a point, inside the test's process or in one of its own.

A point is `before` or `after`, then a method of the chain, a command to the book or one of `STATEMENTS`, then
a count if it is not the first time in this program: `after build 2`. `where` is the folder that says which
chains to use (see `make_chains`), or `sandbox`.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.crash_points import IsDue, OwnProcess, around
from tests.withdrawals import real_chains
from tests.withdrawals.fake_chains import KINDS, open_fake

from merchant_wallet.base.db import connect
from merchant_wallet.base.workers import WorkerConnection
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
    QUERIES[name].text: name
    for name in ("list_unqueued", "queue_orders", "mark_queued", "claim", "read_order", "release")
}
"""The statements of the queue, by their texts."""


def at(point: str) -> IsDue:
    """Recognises a point: `before` or `after`, a step, and a count if it is not the first time."""
    seen: Counter[str] = Counter()

    def is_due(when: str, step: str) -> bool:
        here = f"{when} {STATEMENTS.get(step, step)}"
        seen[here] += 1
        return point == (here if seen[here] == 1 else f"{here} {seen[here]}")

    return is_due


class KillableChain:
    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.wallet = chain.wallet
        self.has_nonces = chain.has_nonces

    async def next_nonce(self, known: int | None, *, is_first: bool) -> int:
        return await around("next_nonce", lambda: self.chain.next_nonce(known, is_first=is_first))

    async def funds(self) -> int:
        return await around("funds", lambda: self.chain.funds())

    async def check_payable(self, transfer: Transfer) -> None:
        await around("check_payable", lambda: self.chain.check_payable(transfer))

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        return await around("build", lambda: self.chain.build(payout, earlier))

    async def build_cancel(self, nonce: int, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        return await around("build_cancel", lambda: self.chain.build_cancel(nonce, earlier))

    async def broadcast(self, raw: bytes) -> None:
        await around("broadcast", lambda: self.chain.broadcast(raw))

    async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        return await around("judge", lambda: self.chain.judge(payout, signed))


class KillableBook:
    def __init__(self, book: Writer) -> None:
        self.book = book

    async def submit(self, merchant_id: int, submission: Submission) -> Outcome:
        name = type(submission.command).__name__
        return await around(name, lambda: self.book.submit(merchant_id, submission))


def make_chains(url: str, where: str, now: list[int]) -> Mapping[str, Chain]:
    """The real chains if the folder names them, else the folder's fake chains, or the sandbox's."""
    if (Path(where) / real_chains.NAME).exists():
        return real_chains.open_real(Path(where))
    if where != "sandbox":
        return {name: open_fake(kind, Path(where) / kind) for kind, (_, name) in KINDS.items()}
    ledger, seed = SandboxLedger(WorkerConnection(partial(connect, url))), bytes(range(64))
    make = partial(SandboxChain, ledger=ledger, seed=seed, confirm_ms=1_500, clock=lambda: now[0])
    return {name: make(name) for name in ("ERC20", "TRC20")}


async def pay(url: str, book_url: str, now_ms: int, where: str) -> None:
    """Pay what is due. The clock advances between turns."""
    now = [now_ms]
    book = Writer(book_url, connections=2, clock=lambda: now[0])
    await book.open()
    apart: dict[str, Any] = {"connect_cell": partial(connect, book_url), "cell_id": 1}
    payer = Payer(
        partial(connect, url),
        KillableBook(book),
        {name: KillableChain(chain) for name, chain in make_chains(url, where, now).items()},
        clock=lambda: now[0],
        **({} if book_url == url else apart),
    )
    try:
        for _ in range(TURNS):
            await payer.start_due()
            await payer.finish()
            now[0] += 1_500
    finally:
        await payer.close()
        await book.close()


def main(url: str, book_url: str, now_ms: str, point: str, where: str) -> None:
    """What the fork server runs."""
    asyncio.run(OwnProcess(at(point)).run_to_death(pay(url, book_url, int(now_ms), where)))
