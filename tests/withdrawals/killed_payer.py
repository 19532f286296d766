"""Starts a payer in its own process and waits until it is killed or frozen at a given point."""

import asyncio
import signal
from typing import TYPE_CHECKING

from tests import fork_server
from tests.fork_server import STOPPED

if TYPE_CHECKING:
    from tests.withdrawals.conftest import Shop


class ForkedProcess:
    """A payer in its own process that is killed or frozen at the point."""

    def __init__(self, shop: "Shop", point: str, sent: str, where: str) -> None:
        self.process = fork_server.fork_program(
            "tests.withdrawals.killable_payer",
            shop.url,
            shop.book_url,
            str(shop.clock.now_ms),
            point,
            sent,
            where,
        )
        self.sent = signal.Signals[sent]
        self.point = point

    async def run_to_point(self) -> None:
        """Wait until the process is dead or frozen. It must not end normally before."""
        wanted = STOPPED if self.sent == signal.SIGSTOP else -self.sent
        assert await asyncio.to_thread(self.process.wait_for_state) == wanted, (
            f"it never came to {self.point}"
        )

    async def resume(self) -> None:
        """Resume a frozen process, and wait for its end."""
        if self.sent == signal.SIGSTOP:
            self.process.resume()
            assert await asyncio.to_thread(self.process.wait_for_state) == 0

    def end(self) -> None:
        self.process.end()


async def meet(shop: "Shop", point: str, sent: str, where: str) -> ForkedProcess:
    child = ForkedProcess(shop, point, sent, where)
    shop.closing.callback(child.end)
    await child.run_to_point()
    # Later than every time that it can have stored.
    shop.clock.advance(60_000)
    return child
