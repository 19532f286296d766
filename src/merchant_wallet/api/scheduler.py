"""Work that waits its turn, so that a crowd of requests can't keep the database or each other waiting.

Rules: first come, first served among what moves money and among what only reads; while both wait, reads get
a quarter of each turn, so that a flood of them can't starve transfers, nor transfers reads. After a few
pieces of work the event loop looks at its sockets: a crowd handled in one go would leave the next batch's
answer unread, and the database idle, for as long as it takes.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

CALLBACKS_PER_TURN: Final = 8
"""So many requests are begun or answered between two looks at the sockets: half a millisecond's work."""
MIN_READS: Final = 2
"""So many of them only read, where so many wait."""

Callback = tuple[Callable[..., None], tuple[Any, ...]]


class Scheduler:
    """The pieces of work that wait. A piece must not raise."""

    def __init__(self) -> None:
        self._writes: deque[Callback] = deque()
        self._reads: deque[Callback] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_due = False

    def schedule(self, only_reads: bool, callback: Callable[..., None], *arguments: Any) -> None:
        """Let a piece of work wait for its turn."""
        (self._reads if only_reads else self._writes).append((callback, arguments))
        if not self._is_due:
            self._loop = self._loop or asyncio.get_running_loop()
            self._schedule_turn()

    def _schedule_turn(self) -> None:
        assert self._loop is not None, "set with the first piece"
        self._is_due = True
        self._loop.call_soon(self._run_turn)

    def _run_turn(self) -> None:
        writes, reads = self._writes, self._reads
        # Both numbers are taken before any work is done: what the work puts here waits for the next turn.
        reserved_reads = min(len(reads), MIN_READS)
        write_count = min(len(writes), CALLBACKS_PER_TURN - reserved_reads)
        read_count = min(len(reads), CALLBACKS_PER_TURN - write_count)
        for queue, count in ((writes, write_count), (reads, read_count)):
            for _ in range(count):
                callback, arguments = queue.popleft()
                callback(*arguments)
        if writes or reads:
            self._schedule_turn()
        else:
            self._is_due = False
