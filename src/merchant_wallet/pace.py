"""Work that waits its turn, so that a crowd of requests can't keep the database waiting.

Rules: first come, first served; after a few pieces of work the event loop looks at its sockets. A crowd
handled in one go would leave the next batch's answer unread, and the database idle, for as long as it takes.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

PIECES: Final = 8
"""So many requests are begun or answered between two looks at the sockets: half a millisecond's work."""


class Pace:
    """The pieces of work that wait. A piece must not raise."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None

    def put(self, work: Callable[..., None], *arguments: Any) -> None:
        """Let a piece of work wait for its turn."""
        waiting = self._waiting
        if not waiting:
            self._loop = self._loop or asyncio.get_running_loop()
            self._loop.call_soon(self._go_on)
        waiting.append((work, arguments))

    def _go_on(self) -> None:
        waiting = self._waiting
        for _ in range(min(PIECES, len(waiting))):
            work, arguments = waiting[0]
            work(*arguments)
            # Only now, so that work that is put meanwhile finds the turn already on its way.
            waiting.popleft()
        if waiting:
            assert self._loop is not None, "set with the first piece"
            self._loop.call_soon(self._go_on)
