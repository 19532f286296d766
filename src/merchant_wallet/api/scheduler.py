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

PIECES: Final = 8
"""So many requests are begun or answered between two looks at the sockets: half a millisecond's work."""
MIN_READS: Final = 2
"""So many of them only read, where so many wait."""

Piece = tuple[Callable[..., None], tuple[Any, ...]]


class Pace:
    """The pieces of work that wait. A piece must not raise."""

    def __init__(self) -> None:
        self._money: deque[Piece] = deque()
        self._reads: deque[Piece] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_due = False

    def put(self, only_reads: bool, work: Callable[..., None], *arguments: Any) -> None:
        """Let a piece of work wait for its turn."""
        (self._reads if only_reads else self._money).append((work, arguments))
        if not self._is_due:
            self._loop = self._loop or asyncio.get_running_loop()
            self._take_turn_soon()

    def _take_turn_soon(self) -> None:
        assert self._loop is not None, "set with the first piece"
        self._is_due = True
        self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        money, reads = self._money, self._reads
        # Both numbers are taken before any work is done: what the work puts here waits for the next turn.
        few_reads = min(len(reads), MIN_READS)
        for_money = min(len(money), PIECES - few_reads)
        for_reads = min(len(reads), PIECES - for_money)
        for queue, pieces in ((money, for_money), (reads, for_reads)):
            for _ in range(pieces):
                work, arguments = queue.popleft()
                work(*arguments)
        if money or reads:
            self._take_turn_soon()
        else:
            self._is_due = False
