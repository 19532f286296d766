"""A payer with a screener in its own process, which kills itself (SIGKILL) at one step of a screening.

Arguments: the database's URL, the clock's time in ms, the URL of the provider, the step. A step is before or
after one of `STEPS`.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from tests.screening.provider import SECRET
from tests.withdrawals.conftest import SEED

from merchant_wallet.base.db import connect
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.book.writer import Writer
from merchant_wallet.chains.sandbox.chain import SandboxChain
from merchant_wallet.processes.screening import make_order_screen
from merchant_wallet.screening import asking, store
from merchant_wallet.screening.hook import ScreeningHook
from merchant_wallet.screening.screener import Screener
from merchant_wallet.withdrawals.payer import Payer
from merchant_wallet.withdrawals.sandbox_ledger import SandboxLedger

STEPS: Final = ("begin", "begin_question", "ask", "answer_question", "move")


def killing(point: str, name: str, do: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The function with a step before and one after it."""

    async def around(*given: Any, **named: Any) -> Any:
        if point == f"before {name}":
            os.kill(os.getpid(), signal.SIGKILL)
        done = await do(*given, **named)
        if point == f"after {name}":
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    return around


async def pay_until_killed(url: str, now_ms: int, hook_url: str, point: str) -> None:
    """Take one turn."""
    hook = ScreeningHook(hook_url, SECRET, timeout_ms=5000, clock=lambda: now_ms)
    for name in STEPS:
        owner: Any = {"ask": hook, "move": store}.get(name, asking)
        setattr(owner, name, killing(point, name, getattr(owner, name)))
    book = Writer(url, connections=2, clock=lambda: now_ms)
    await book.open()
    ledger = SandboxLedger(WorkerConnection(partial(connect, url)))
    chain = SandboxChain("ERC20", ledger, seed=SEED, confirm_ms=1_500, clock=lambda: now_ms)
    screen = make_order_screen(Screener(None, hook, clock=lambda: now_ms))
    payer = Payer(partial(connect, url), book, {"ERC20": chain}, clock=lambda: now_ms, screen_order=screen)
    await payer.start_due()
    await payer.finish()


def main(url: str, now_ms: str, hook_url: str, point: str) -> None:
    """What the fork server runs."""
    asyncio.run(pay_until_killed(url, int(now_ms), hook_url, point))
