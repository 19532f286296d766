"""Answers of nodes that are the same for everybody who asks within a moment.

Rules:
- An answer is used until it is `max_age_s` old. Its age counts from the beginning of its request.
- Who asks while the request is under way waits for the same answer.
- A failure is raised for all who wait, and is not kept.
- A caller that gives up leaves the request to the others.
- With an age of 0 every question is asked, unless two are asked at the same instant.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, TypeVar

import msgspec

from merchant_wallet.chains.stopwatch import standing

KEPT_FEES: Final = 4_096
"""So many fees of final transactions are kept for each node, so that nobody asks for them again."""

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class _Reading(msgspec.Struct, frozen=True):
    """A request, under way or answered, and when it began."""

    began_s: float
    answer: "asyncio.Future[Any]"

    @property
    def has_failed(self) -> bool:
        answer = self.answer
        return answer.done() and (answer.cancelled() or answer.exception() is not None)


class Recent:
    """The recent answers of one chain's nodes, by key. `clock_s` counts seconds from any moment."""

    def __init__(self, max_age_s: float, clock_s: Callable[[], float]) -> None:
        self._max_age_s: Final = max_age_s
        self._clock_s = clock_s
        self._readings: dict[Hashable, _Reading] = {}

    async def read(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """The recent answer, or else a new one. Raises what `ask` raises."""
        reading = self._readings.get(key)
        if reading is None or reading.has_failed or self._is_old(reading):
            return await self.renew(key, ask)
        # Whoever asked first times the node, and knows how long its limits made the request wait.
        with standing():
            answer: T = await asyncio.shield(reading.answer)
        return answer

    async def renew(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """A new answer, which others may use from now on. Raises what `ask` raises."""
        for old in [key for key, reading in self._readings.items() if self._is_old(reading)]:
            del self._readings[old]
        answer = asyncio.ensure_future(ask())
        # Perhaps nobody waits any more when it fails.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._readings[key] = _Reading(self._clock_s(), answer)
        return await asyncio.shield(answer)

    def put(self, key: Hashable, value: object) -> None:
        """Note what an answer to another question has shown, now."""
        answer = asyncio.get_running_loop().create_future()
        answer.set_result(value)
        self._readings[key] = _Reading(self._clock_s(), answer)

    def forget(self) -> None:
        """Let whoever asks next ask the nodes."""
        self._readings.clear()

    async def close(self) -> None:
        """End the requests that nobody waits for any more."""
        running = [reading.answer for reading in self._readings.values() if not reading.answer.done()]
        for answer in running:
            answer.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._readings.clear()

    def _is_old(self, reading: _Reading) -> bool:
        return self._clock_s() - reading.began_s > self._max_age_s


def keep(kept: dict[K, T], key: K, value: T, most: int) -> T:
    """Keep a value that never changes, in place of the oldest if there are `most` already."""
    while len(kept) >= most and key not in kept:
        del kept[next(iter(kept))]
    kept[key] = value
    return value
