"""Fair scheduler of requests on the event loop.

Rules:
- Writes and reads have a queue each. While both wait, reads get a quarter of each round (`base.fair_queue`).
- Within a queue the merchants take turns, and the sources of one merchant take its turns (`turns`). A request
  waits for a turn to begin and for another to be answered.
- A round is a few callbacks, then the event loop polls its sockets. Without that, a crowd of requests would
  leave the database's answer unread, and the database idle.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context
from operator import itemgetter
from typing import Any, Final

from merchant_wallet.api.turns import Turn
from merchant_wallet.base.fair_queue import FairQueue, RoundRobin

CALLBACKS_PER_ROUND: Final = 8
"""How many requests are begun or answered between two polls of the sockets: about half a millisecond."""
MIN_READS: Final = 2
"""How many of them are reads, if that many reads wait."""

Callback = tuple[Turn, Callable[..., None], tuple[Any, ...]]
_turn_of: Final[Callable[[Callback], Turn]] = itemgetter(0)


class Scheduler:
    """Runs callbacks in rounds. A callback must not raise."""

    def __init__(self) -> None:
        self._queue: FairQueue[Callback] = FairQueue(
            MIN_READS, caps_reads=False, make_queue=lambda: RoundRobin(_turn_of)
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        # Of its own: a round runs callbacks of many requests.
        self._context = Context()
        self._is_due = False

    def schedule(self, turn: Turn, only_reads: bool, callback: Callable[..., None], *arguments: Any) -> None:
        """Let a callback wait for its turn."""
        self._queue.put((turn, callback, arguments), is_read=only_reads)
        if not self._is_due:
            self._loop = self._loop or asyncio.get_running_loop()
            self._schedule_round()

    def _schedule_round(self) -> None:
        assert self._loop is not None, "set with the first callback"
        self._is_due = True
        self._loop.call_soon(self._run_round, context=self._context)

    def _run_round(self) -> None:
        # Taken before any of them runs: what they schedule waits for the next round.
        for _, callback, arguments in self._queue.take(CALLBACKS_PER_ROUND):
            callback(*arguments)
        if self._queue:
            self._schedule_round()
        else:
            self._is_due = False
