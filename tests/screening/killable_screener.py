"""A payer with a screener that tests kill at one step of a screening, in the test's process or another.

A step is before or after one of `STEPS`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import pytest
from tests.crash_points import IsDue, OwnProcess, find_program
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


def at(point: str) -> IsDue:
    """Recognises a step."""
    return lambda when, step: f"{when} {step}" == point


def _watched(name: str, do: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The function with a step before and one after it, for the program that calls it."""

    async def around(*given: Any, **named: Any) -> Any:
        program = find_program()
        take = partial(do, *given, **named)
        return await (take() if program is None else program.around(name, take))

    return around


async def pay(url: str, now_ms: int, hook_url: str) -> None:
    """Take one turn."""
    hook = ScreeningHook(hook_url, SECRET, timeout_ms=5000, clock=lambda: now_ms)
    with pytest.MonkeyPatch.context() as patch:
        for name in STEPS:
            owner: Any = {"ask": hook, "move": store}.get(name, asking)
            patch.setattr(owner, name, _watched(name, getattr(owner, name)))
        await _pay(url, now_ms, hook)


async def _pay(url: str, now_ms: int, hook: ScreeningHook) -> None:
    book = Writer(url, connections=2, clock=lambda: now_ms)
    await book.open()
    ledger = SandboxLedger(WorkerConnection(partial(connect, url)))
    chain = SandboxChain("ERC20", ledger, seed=SEED, confirm_ms=1_500, clock=lambda: now_ms)
    screen = make_order_screen(Screener(None, hook, clock=lambda: now_ms))
    payer = Payer(partial(connect, url), book, {"ERC20": chain}, clock=lambda: now_ms, screen_order=screen)
    try:
        await payer.start_due()
        await payer.finish()
    finally:
        await payer.close()
        await book.close()


def main(url: str, now_ms: str, hook_url: str, point: str) -> None:
    """What the fork server runs."""
    asyncio.run(OwnProcess(at(point)).run_to_death(pay(url, int(now_ms), hook_url)))
