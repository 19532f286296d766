"""A fair queue for two kinds of work, writes and reads. Neither can starve the other.

Rules:
- Within each kind: first come, first served. With `RoundRobin` the owners of the work take turns.
- While both wait, reads keep a few places of each batch. So a flood of writes can't stop them.
- Writes get all other places. So a flood of reads can't stop them.
- If reads slow down the writes of their batch, they are limited: half as many as there are writes.
"""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Queue(Protocol[T]):
    """What a queue of one kind can do."""

    def append(self, work: T, /) -> None: ...

    def popleft(self) -> T: ...

    def __len__(self) -> int: ...


class RoundRobin(Generic[T]):
    """Waiting work of several owners, who take turns with one piece each. `owner_of` says whose a piece is.

    An owner's own pieces stay in order. Whoever has nothing waiting costs nothing.
    """

    __slots__ = ("_count", "_order", "_owner_of", "_waiting")

    def __init__(self, owner_of: Callable[[T], Hashable]) -> None:
        self._owner_of = owner_of
        self._waiting: dict[Hashable, deque[T]] = {}
        self._order: deque[Hashable] = deque()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, work: T, /) -> None:
        """Add a piece of work. A new owner's turn comes after all others'."""
        owner = self._owner_of(work)
        waiting = self._waiting.get(owner)
        if waiting is None:
            self._waiting[owner] = deque((work,))
            self._order.append(owner)
        else:
            waiting.append(work)
        self._count += 1

    def popleft(self) -> T:
        """The next piece of the owner whose turn it is. Raises IndexError if nothing waits."""
        owner = self._order.popleft()
        waiting = self._waiting[owner]
        work = waiting.popleft()
        if waiting:
            self._order.append(owner)
        else:
            del self._waiting[owner]
        self._count -= 1
        return work


class FairQueue(Generic[T]):
    """Waiting work. `min_reads` places of each batch are kept for waiting reads.

    `make_queue` makes the queue of each kind.
    """

    __slots__ = ("_caps_reads", "_min_reads", "_reads", "_writes")

    def __init__(
        self, min_reads: int, *, caps_reads: bool, make_queue: Callable[[], Queue[T]] = deque
    ) -> None:
        self._min_reads = min_reads
        self._caps_reads = caps_reads
        self._writes = make_queue()
        self._reads = make_queue()

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
