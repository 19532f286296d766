"""A payer in its own process that kills itself (SIGKILL) at a named point; `test_payer_crash.py` starts it.

Arguments: database URL, the clock's moment in ms, and the point: `before` or `after`, then what: a method of
the chain or a command to the book.
"""

import asyncio
import os
import signal
import sys
from functools import partial

from merchant_wallet.book.commands import Submission
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.writer import Writer
from merchant_wallet.chains.protocol import Payout, SignedTransfer, Verdict
from merchant_wallet.chains.sandbox import SandboxChain
from merchant_wallet.db import connect
from merchant_wallet.withdrawals.payer import Payer
from merchant_wallet.withdrawals.sandbox_ledger import SandboxLedger
from merchant_wallet.workers import Line


class Death:
    """Kills this process when it comes to the point named."""

    def __init__(self, point: str) -> None:
        self.point = point

    def __call__(self, here: str) -> None:
        if here == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


class DyingChain:
    def __init__(self, chain: SandboxChain, death: Death) -> None:
        self.chain = chain
        self.death = death

    async def build(self, payout: Payout) -> SignedTransfer:
        self.death("before build")
        signed = await self.chain.build(payout)
        self.death("after build")
        return signed

    async def broadcast(self, raw: bytes) -> None:
        self.death("before broadcast")
        await self.chain.broadcast(raw)
        self.death("after broadcast")

    async def judge(self, tx_hash: str) -> Verdict:
        verdict = await self.chain.judge(tx_hash)
        self.death("after judge")
        return verdict


class DyingBook:
    def __init__(self, book: Writer, death: Death) -> None:
        self.book = book
        self.death = death

    async def submit(self, merchant_id: int, submission: Submission) -> Outcome:
        command = type(submission.command).__name__
        self.death(f"before {command}")
        outcome = await self.book.submit(merchant_id, submission)
        self.death(f"after {command}")
        return outcome


async def pay_until_death(url: str, now_ms: int, point: str) -> None:
    """Pay what is due, by a clock that goes from one turn to the next."""
    death, now = Death(point), [now_ms]
    book = Writer(url, connections=2, clock=lambda: now[0])
    await book.open()
    ledger, seed = SandboxLedger(Line(partial(connect, url))), bytes(range(64))
    make = partial(SandboxChain, ledger=ledger, seed=seed, confirm_ms=1_500, clock=lambda: now[0])
    chains = {name: DyingChain(make(name), death) for name in ("ERC20", "TRC20")}
    payer = Payer(partial(connect, url), DyingBook(book, death), chains, clock=lambda: now[0])
    for _ in range(5):
        await payer.start_due()
        await payer.finish()
        now[0] += 1_500


if __name__ == "__main__":
    asyncio.run(pay_until_death(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
