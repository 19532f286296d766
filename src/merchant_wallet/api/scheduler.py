"""Fair scheduler of requests on the event loop.

Rules:
- Writes and reads have a queue each. While both wait, reads get a quarter of each turn (`base.fair_queue`).
- A turn is a few callbacks, then the event loop polls its sockets. Without that, a crowd of requests would
  leave the database's answer unread, and the database idle.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from merchant_wallet.base.fair_queue import FairQueue

CALLBACKS_PER_TURN: Final = 8
"""How many requests are begun or answered between two polls of the sockets: about half a millisecond."""
MIN_READS: Final = 2
"""How many of them are reads, if that many reads wait."""

Callback = tuple[Callable[..., None], tuple[Any, ...]]


class Scheduler:
    """Runs callbacks in turns. A callback must not raise."""

    def __init__(self) -> None:
        self._queue: FairQueue[Callback] = FairQueue(MIN_READS, caps_reads=False)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_due = False

    def schedule(self, only_reads: bool, callback: Callable[..., None], *arguments: Any) -> None:
        """Let a callback wait for its turn."""
        self._queue.put((callback, arguments), is_read=only_reads)
        if not self._is_due:
            self._loop = self._loop or asyncio.get_running_loop()
            self._schedule_turn()

    def _schedule_turn(self) -> None:
        assert self._loop is not None, "set with the first callback"
        self._is_due = True
        self._loop.call_soon(self._run_turn)

    def _run_turn(self) -> None:
        # Taken before any of them runs: what they schedule waits for the next turn.
        for callback, arguments in self._queue.take(CALLBACKS_PER_TURN):
            callback(*arguments)
        if self._queue:
            self._schedule_turn()
        else:
            self._is_due = False
