"""This process's clock, compared with the database's.

Rules:
- Requests are judged by the process's clock. A machine whose clock is wrong refuses good callers, while its
  siblings answer them.
- Above `MAX_SKEW_MS` the difference is logged. Above `WRONG_MS` the process is not ready, so that proxies
  choose others.
- A comparison takes a round trip. What that explains is no difference.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from merchant_wallet.base.clock import MAX_SKEW_MS, find_skew_ms

log = structlog.get_logger("server")

WRONG_MS: Final = 30_000


class ComparedClock:
    """`ahead_ms` is positive if this process is ahead, and None before the first comparison."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.ahead_ms: int | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether no request should be judged by it."""
        return _grade(self.ahead_ms) == _WRONG

    async def compare(self, read_other_ms: Callable[[], Awaitable[int]]) -> int:
        """Compare it with the other clock, and log what has changed. Returns `ahead_ms`."""
        before_ms = self._clock()
        other_ms = await read_other_ms()
        ahead_ms = find_skew_ms(before_ms, other_ms, self._clock())
        was, now = _grade(self.ahead_ms), _grade(ahead_ms)
        self.ahead_ms = ahead_ms
        if now != was:
            log.log(_LEVELS[now], _TEXTS[now], skew_s=ahead_ms / 1000)
        return ahead_ms


_WRONG: Final = 2
_LEVELS: Final = (logging.INFO, logging.WARNING, logging.ERROR)
_TEXTS: Final = (
    "the clocks of this machine and the database agree again",
    "the clocks of this machine and the database differ; are both set by NTP?",
    "a clock is wrong, this machine's or the database's; this process is not ready",
)


def _grade(ahead_ms: int | None) -> int:
    distance_ms = abs(ahead_ms or 0)
    return (distance_ms > MAX_SKEW_MS) + (distance_ms > WRONG_MS)
