"""Moments as people read them. Pure."""

from datetime import UTC, datetime
from typing import Final

END_MS: Final = 253_402_300_800_000
"""The year 10000: a calendar ends here, a number that somebody tampered with does not."""


def format_moment(at_ms: int) -> str:
    """A moment in UTC: `2026-11-29 15:02:26.123Z`."""
    if not 0 <= at_ms < END_MS:
        return f"{at_ms} ms"
    return f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03}Z"
