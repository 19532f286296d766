"""The only place that reads the wall clock.

Times are whole milliseconds since the epoch, UTC. Pure modules get the time as a parameter. Limits measure
intervals with a monotonic clock.
"""

import time


def now_ms() -> int:
    """The current time in milliseconds since the epoch, UTC."""
    return time.time_ns() // 1_000_000
