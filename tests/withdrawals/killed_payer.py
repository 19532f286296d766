"""Runs a payer until it is killed or frozen at a given point."""

import asyncio
import signal
from typing import TYPE_CHECKING

from tests.crash_points import Program
from tests.fork_server import fork_program
from tests.withdrawals.killable_payer import at, pay

if TYPE_CHECKING:
    from tests.withdrawals.conftest import Shop

KILLED, FROZEN = "killed", "frozen"


async def meet(shop: "Shop", point: str, end: str, where: str) -> Program:
    """A payer that is killed or frozen at the point. It must not end before."""
    payer, work = Program(at(point)), pay(shop.url, shop.book_url, shop.clock.now_ms, where)
    if end == FROZEN:
        await shop.closing.enter_async_context(payer.frozen(work))
    else:
        assert await payer.run_to_death(work), f"it never came to {point}"
    _pass_time(shop)
    return payer


async def kill_process(shop: "Shop", point: str, where: str) -> None:
    """A payer in a process of its own, which is killed at the point."""
    told = (shop.url, shop.book_url, str(shop.clock.now_ms), point, where)
    child = fork_program("tests.withdrawals.killable_payer", *told)
    try:
        assert await asyncio.to_thread(child.wait_for_state) == -signal.SIGKILL, f"it never came to {point}"
    finally:
        child.end()
    _pass_time(shop)


def _pass_time(shop: "Shop") -> None:
    """Later than every time that the payer can have stored."""
    shop.clock.advance(60_000)
