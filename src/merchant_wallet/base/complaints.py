"""Warnings in the log about what a person must mend, at most one an hour of each kind.

Requests cause them, and anybody may send requests. So they never fill the log, and what a request says is
cut.
"""

import time
from collections.abc import Callable
from typing import Final

import structlog

log = structlog.get_logger("proxies")

REPEAT_S: Final = 3600.0
MAX_SHOWN: Final = 200
"""So many characters of a text are logged: the last ones, which were added last."""


class Complaints:
    """See the module. `monotonic` gives seconds."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._quiet_until_s: dict[str, float] = {}

    def say(self, fault: str, **facts: str) -> None:
        """Log a fault with its facts, unless it was logged less than an hour ago."""
        now_s = self._monotonic()
        if now_s >= self._quiet_until_s.get(fault, now_s):
            self._quiet_until_s[fault] = now_s + REPEAT_S
            log.warning(fault, **{name: _show(text) for name, text in facts.items()})


def _show(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()[-MAX_SHOWN:]
