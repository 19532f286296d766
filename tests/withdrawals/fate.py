"""Starting a payer in a process of its own and seeing it killed, or frozen, at a named point."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.withdrawals.conftest import Shop

CHILD = Path(__file__).with_name("dying_payer.py")
ROOT = Path(__file__).parents[2]


class Child:
    """A payer in its own process, killed or frozen at the point."""

    def __init__(self, shop: "Shop", point: str, sent: str, where: str) -> None:
        arguments = [shop.url, str(shop.clock.now_ms), point, sent, where]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
        self.process = subprocess.Popen([sys.executable, str(CHILD), *arguments], env=environment)
        self.sent = signal.Signals[sent]
        self.point = point

    async def meet_fate(self) -> None:
        """Wait until it is dead, or stands still. It must not have come to its end without that."""
        _, status = await asyncio.to_thread(os.waitpid, self.process.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            assert self.sent == signal.SIGSTOP
            return
        self.process.returncode = os.waitstatus_to_exitcode(status)
        assert self.process.returncode == -self.sent, f"it never came to {self.point}"

    async def wake(self) -> None:
        """Let a frozen one go on to its own end."""
        if self.sent == signal.SIGSTOP:
            os.kill(self.process.pid, signal.SIGCONT)
            assert await asyncio.to_thread(self.process.wait, 60) == 0

    def end(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()


async def meet(shop: "Shop", point: str, sent: str, where: str) -> Child:
    child = Child(shop, point, sent, where)
    shop.closing.callback(child.end)
    await child.meet_fate()
    # Past every moment that it can have written down.
    shop.clock.advance(60_000)
    return child
