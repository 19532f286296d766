"""A fair queue for two kinds of work, writes and reads. Neither can starve the other.

Rules:
- Within each kind: first come, first served.
- While both wait, reads keep a few places of each batch. So a flood of writes can't stop them.
- Writes get all other places. So a flood of reads can't stop them.
- If reads slow down the writes of their batch, they are limited: half as many as there are writes.
"""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Waiting work. `min_reads` places of each batch are kept for waiting reads."""

    __slots__ = ("_caps_reads", "_min_reads", "_reads", "_writes")

    def __init__(self, min_reads: int, *, caps_reads: bool) -> None:
        self._min_reads = min_reads
        self._caps_reads = caps_reads
        self._writes: deque[T] = deque()
        self._reads: deque[T] = deque()

    def __len__(self) -> int:
        return len(self._writes) + len(self._reads)

    def put(self, work: T, *, is_read: bool) -> None:
        """Add a piece of work."""
        (self._reads if is_read else self._writes).append(work)

    def take(self, limit: int) -> list[T]:
        """The next batch, writes first, of at most `limit`, which is 2 or more."""
        writes, reads = self._writes, self._reads
        for_writes = max(limit - min(len(reads), self._min_reads), limit // 2)
        batch = [writes.popleft() for _ in range(min(len(writes), for_writes))]
        for_reads = limit - len(batch)
        if batch and self._caps_reads:
            for_reads = min(for_reads, max(self._min_reads, len(batch) // 2))
        batch += [reads.popleft() for _ in range(min(len(reads), for_reads))]
        return batch
