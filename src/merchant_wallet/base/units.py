"""Units that many modules count in."""

from typing import Final

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
WEEK_MS: Final = 7 * DAY_MS
MIN_BIGINT: Final = -(2**63)
MAX_BIGINT: Final = 2**63 - 1
"""The least and the largest number of a column of PostgreSQL's type bigint, and of an int64."""
