"""What a process counts of the requests that it answers: by path, code and how long it took.

Rules: the hot path counts with one increment of one number; everything else is made of these when it is asked
for. Times are sorted by doubling milliseconds.
"""

from collections import defaultdict
from typing import Final

LAST_BUCKET: Final = 15
"""Bucket n holds what took less than 2**n milliseconds and is in no lower one; the last holds the rest."""


class RequestCounters:
    """Numbers by (path, code, bucket), of this process since it started."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: defaultdict[tuple[str, int, int], int] = defaultdict(int)

    def count(self, path: str, code: int, took_s: float) -> None:
        """Count one answer."""
        self.counts[path, code, min(int(took_s * 1000).bit_length(), LAST_BUCKET)] += 1

    def by_code(self) -> dict[tuple[str, int], int]:
        """How many answers had each path and code."""
        sums: dict[tuple[str, int], int] = {}
        for (path, code, _), count in list(self.counts.items()):
            sums[path, code] = sums.get((path, code), 0) + count
        return sums

    def by_time(self) -> dict[str, list[int]]:
        """How many answers of each path were in each bucket."""
        sums: dict[str, list[int]] = {}
        for (path, _, bucket), count in list(self.counts.items()):
            sums.setdefault(path, [0] * (LAST_BUCKET + 1))[bucket] += count
        return sums
