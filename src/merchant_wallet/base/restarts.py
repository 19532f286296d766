"""Pauses before an ended process is started again. Pure."""

from typing import Final

FIRST_PAUSE_S: Final = 0.5
LAST_PAUSE_S: Final = 30.0
HEALTHY_AFTER_S: Final = 30.0
"""A process that ran this long was healthy. Its next end counts as the first one."""


class Backoff:
    """The pauses between restarts of one process. Each is twice as long as the one before, up to a limit."""

    def __init__(self, *, immediate_first: bool = False) -> None:
        """`immediate_first`: the first restart after a healthy run has no pause."""
        self._immediate_first = immediate_first
        self._failures = 0

    def next_pause_s(self, ran_s: float) -> float:
        """The pause before the next start, after the process ran for `ran_s` and ended by itself."""
        doublings = 0 if ran_s > HEALTHY_AFTER_S else self._failures
        self._failures = doublings + 1
        if self._immediate_first:
            doublings -= 1
        return min(LAST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(doublings, 10)) if doublings >= 0 else 0.0
