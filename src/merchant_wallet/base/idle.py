"""Connections that nobody uses just now: kept for the next user, closed when none comes for a while.

Rules: the one used last is given out first, so that the others grow old. A few may be kept for ever.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

IDLE_S: Final = 30.0
"""A connection that was not used for this long is closed."""


class IdleConnections(Generic[T]):
    """Unused connections of one pool; `least` of them are never closed for their age."""

    def __init__(
        self, close: Callable[[T], Awaitable[None]], *, least: int = 0, idle_s: float | None = None
    ) -> None:
        self._close = close
        self._least = least
        self._idle_s = IDLE_S if idle_s is None else idle_s
        self._kept: list[tuple[float, T]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many are unused."""
        return len(self._kept)

    def put(self, connection: T) -> None:
        """Keep a connection that is no longer used."""
        self._kept.append((time.monotonic(), connection))
        self._plan()

    def take(self) -> T | None:
        """The connection that was used last; None when there is none."""
        return self._kept.pop()[1] if self._kept else None

    async def close(self) -> None:
        """Close all."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._kept:
            await self._close(self._kept.pop()[1])
        await asyncio.gather(*self._closing)

    def _plan(self) -> None:
        if self._timer is None and len(self._kept) > self._least:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._shrink)

    def _shrink(self) -> None:
        self._timer = None
        before_s = time.monotonic() - self._idle_s
        while len(self._kept) > self._least and self._kept[0][0] <= before_s:
            task = asyncio.create_task(self._end(self._kept.pop(0)[1]))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        self._plan()

    async def _end(self, connection: T) -> None:
        await self._close(connection)
