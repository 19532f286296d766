"""The one place that reads the wall clock.

Rules: moments are whole milliseconds since the epoch, UTC. The pure modules never call this: they are handed
the moment. Intervals for limits are measured by the caller with a monotonic clock.
"""

import time


def now_ms() -> int:
    """This moment in milliseconds since the epoch, UTC."""
    return time.time_ns() // 1_000_000
