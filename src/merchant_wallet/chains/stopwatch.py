"""How long a node takes for what one task asks, without the time for which its calls wait for their turns."""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


class Stopwatch:
    """The time of a task since now. It stands while any call of the task waits for its turn."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._began_s = self._clock()
        self._stood_s = 0.0
        self._stops = 0

    def stop(self) -> None:
        """A call begins to wait."""
        if self._stops == 0:
            self._stood_s -= self._clock()
        self._stops += 1

    def resume(self) -> None:
        """A call waits no more."""
        self._stops -= 1
        if self._stops == 0:
            self._stood_s += self._clock()

    @property
    def elapsed_s(self) -> float:
        """The seconds that it ran."""
        now_s = self._clock()
        return now_s - self._began_s - self._stood_s - (now_s if self._stops else 0.0)


_watch: ContextVar[Stopwatch | None] = ContextVar("_watch", default=None)


async def timed(watch: Stopwatch, asked: Awaitable[T]) -> T:
    """What is asked, with the watch for its waits. To be run as a task."""
    _watch.set(watch)
    return await asked


@contextmanager
def standing() -> Iterator[None]:
    """Stop the watch of this task, if it has one."""
    watch = _watch.get()
    if watch is not None:
        watch.stop()
    try:
        yield
    finally:
        if watch is not None:
            watch.resume()
