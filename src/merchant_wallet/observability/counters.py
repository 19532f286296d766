"""Counters of a process's answers, by path, code and duration.

Rules: the hot path increments two numbers per answer. Everything else is computed from these numbers on
request. The limits of the buckets double, in milliseconds.
"""

from collections import defaultdict
from typing import Final

LAST_BUCKET: Final = 15
"""Bucket n counts answers that took less than 2**n milliseconds and belong to no lower bucket. The last
counts the rest.
"""


class RequestCounters:
    """Counts by (path, code, bucket), and the seconds by path, since the start of this process."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts: defaultdict[tuple[str, int, int], int] = defaultdict(int)
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def count(self, path: str, code: int, took_s: float) -> None:
        """Count one answer."""
        self.counts[path, code, min(int(took_s * 1000).bit_length(), LAST_BUCKET)] += 1
        self.seconds[path] += took_s

    def by_code(self) -> dict[tuple[str, int], int]:
        """The number of answers by path and code."""
        sums: dict[tuple[str, int], int] = {}
        for (path, code, _), count in list(self.counts.items()):
            sums[path, code] = sums.get((path, code), 0) + count
        return sums

    def sums_s(self) -> dict[str, float]:
        """The seconds that all answers of each path took together."""
        return dict(self.seconds)

    def by_time(self) -> dict[str, list[int]]:
        """The number of answers of each path by bucket."""
        sums: dict[str, list[int]] = {}
        for (path, _, bucket), count in list(self.counts.items()):
            sums.setdefault(path, [0] * (LAST_BUCKET + 1))[bucket] += count
        return sums
