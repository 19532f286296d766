"""Starting a payer in a process of its own and seeing it killed, or frozen, at a named point."""

import asyncio
import signal
from typing import TYPE_CHECKING

from tests import fork_server
from tests.fork_server import STOPPED

if TYPE_CHECKING:
    from tests.withdrawals.conftest import Shop


class ForkedProcess:
    """A payer in its own process, killed or frozen at the point."""

    def __init__(self, shop: "Shop", point: str, sent: str, where: str) -> None:
        self.process = fork_server.fork_program(
            "tests.withdrawals.killable_payer", shop.url, str(shop.clock.now_ms), point, sent, where
        )
        self.sent = signal.Signals[sent]
        self.point = point

    async def run_to_point(self) -> None:
        """Wait until it is dead, or stands still. It must not have come to its end without that."""
        wanted = STOPPED if self.sent == signal.SIGSTOP else -self.sent
        assert await asyncio.to_thread(self.process.wait_for_state) == wanted, (
            f"it never came to {self.point}"
        )

    async def resume(self) -> None:
        """Let a frozen one go on to its own end."""
        if self.sent == signal.SIGSTOP:
            self.process.resume()
            assert await asyncio.to_thread(self.process.wait_for_state) == 0

    def end(self) -> None:
        self.process.end()


async def meet(shop: "Shop", point: str, sent: str, where: str) -> ForkedProcess:
    child = ForkedProcess(shop, point, sent, where)
    shop.closing.callback(child.end)
    await child.run_to_point()
    # Past every moment that it can have written down.
    shop.clock.advance(60_000)
    return child
