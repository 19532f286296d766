"""The only place that reads the wall clock.

Times are whole milliseconds since the epoch, UTC. Pure modules get the time as a parameter. Limits measure
intervals with a monotonic clock.
"""

import time
from typing import Final

MAX_SKEW_MS: Final = 1000
"""What clocks that are set by NTP never differ by."""


def now_ms() -> int:
    """The current time in milliseconds since the epoch, UTC."""
    return time.time_ns() // 1_000_000


def find_skew_ms(before_ms: int, other_ms: int, after_ms: int) -> int:
    """How far our clock is ahead of another one, which was read between two readings of ours.

    What the reading itself can explain is 0.
    """
    return max(before_ms - other_ms, 0) - max(other_ms - after_ms, 0)
