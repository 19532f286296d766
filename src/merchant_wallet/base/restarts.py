"""How long to wait before a process that ended by itself is started again: pure."""

from typing import Final

FIRST_PAUSE_S: Final = 0.5
LAST_PAUSE_S: Final = 30.0
HEALTHY_AFTER_S: Final = 30.0
"""A process that ran for this long was healthy: its next end counts as a first one."""


class Backoff:
    """The pauses between the restarts of one process: each twice as long as the last, up to a limit."""

    def __init__(self, *, at_once: bool = False) -> None:
        """`at_once`: the first restart after a healthy run has no pause."""
        self._at_once = at_once
        self._failures = 0

    def next_pause_s(self, ran_s: float) -> float:
        """The pause before the next start of the process; it ran for `ran_s` and ended by itself."""
        doublings = 0 if ran_s > HEALTHY_AFTER_S else self._failures
        self._failures = doublings + 1
        if self._at_once:
            doublings -= 1
        return min(LAST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(doublings, 10)) if doublings >= 0 else 0.0
