"""A fair queue for two kinds of work, writes and reads. Neither can starve the other.

Rules:
- Within each kind: first come, first served. With `RoundRobin` the owners of the work take turns.
- While both wait, reads keep a few places of each batch. So a flood of writes can't stop them.
- Writes get all other places. So a flood of reads can't stop them.
- If reads slow down the writes of their batch, they are limited: half as many as there are writes.
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
Owner = tuple[str, str]
"""A group and a member of it."""


class Queue(Protocol[T]):
    """What a queue of one kind can do."""

    def append(self, work: T, /) -> None: ...

    def take(self, limit: int) -> list[T]: ...

    def __len__(self) -> int: ...


class InOrder(deque[T]):
    """Waiting work: first come, first served."""

    __slots__ = ()

    def take(self, limit: int) -> list[T]:
        """The next pieces, at most `limit`."""
        return [self.popleft() for _ in range(min(limit, len(self)))]


class RoundRobin(Generic[T]):
    """Waiting work of several owners, who take turns with one piece each. `owner_of` says whose a piece is.

    An owner is a group and a member of it. Groups take turns; within a group its members do. So a group gets
    no more turns if it has more members. An owner's own pieces stay in order. Owners with nothing waiting
    need no memory.
    """

    __slots__ = ("_count", "_members", "_order", "_owner_of", "_waiting")

    def __init__(self, owner_of: Callable[[T], Owner]) -> None:
        self._owner_of = owner_of
        self._waiting: dict[Owner, deque[T]] = {}
        self._members: dict[str, deque[Owner]] = {}
        self._order: deque[str] = deque()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, work: T, /) -> None:
        """Add a piece of work. A new owner's turn comes after those of all others."""
        owner = self._owner_of(work)
        waiting = self._waiting.get(owner)
        if waiting is None:
            self._waiting[owner] = deque((work,))
            self._add_owner(owner)
        else:
            waiting.append(work)
        self._count += 1

    def _add_owner(self, owner: Owner) -> None:
        group = owner[0]
        members = self._members.get(group)
        if members is None:
            self._members[group] = deque((owner,))
            self._order.append(group)
        else:
            members.append(owner)

    def take(self, limit: int) -> list[T]:
        """The next pieces, at most `limit`."""
        count = min(limit, self._count)
        self._count -= count
        if len(self._waiting) == 1:
            return self._take_of_one(count)
        return [self._take_turn() for _ in range(count)]

    def _take_of_one(self, count: int) -> list[T]:
        """The same as `count` turns, but faster, while a single owner has work waiting."""
        (waiting,) = self._waiting.values()
        taken = [waiting.popleft() for _ in range(count)]
        if not waiting:
            self._waiting.clear()
            self._members.clear()
            self._order.clear()
        return taken

    def take_ready(
        self, is_ready: Callable[[Owner], bool], is_group_ready: Callable[[str], bool] = lambda _: True
    ) -> T | None:
        """The next piece of the first owner in turn who is ready. The others keep their turn.

        The members of a group that is not ready are not looked at.
        """
        for group in self._order:
            if not is_group_ready(group):
                continue
            for owner in self._members[group]:
                if is_ready(owner):
                    self._order.remove(group)
                    self._members[group].remove(owner)
                    self._count -= 1
                    return self._pass_on(owner)
        return None

    def remove(self, work: T) -> None:
        """Take a waiting piece of work out. Its owner's other pieces keep their turn."""
        owner = self._owner_of(work)
        self._waiting[owner].remove(work)
        self._count -= 1
        if self._waiting[owner]:
            return
        del self._waiting[owner]
        members = self._members[owner[0]]
        members.remove(owner)
        if not members:
            del self._members[owner[0]]
            self._order.remove(owner[0])

    def _take_turn(self) -> T:
        group = self._order.popleft()
        return self._pass_on(self._members[group].popleft())

    def _pass_on(self, owner: Owner) -> T:
        """The next piece of an owner who was taken out of the order. Its next turn comes last."""
        group = owner[0]
        members = self._members[group]
        waiting = self._waiting[owner]
        work = waiting.popleft()
        if waiting:
            members.append(owner)
        else:
            del self._waiting[owner]
        if members:
            self._order.append(group)
        else:
            del self._members[group]
        return work


class FairQueue(Generic[T]):
    """Waiting work. `min_reads` places of each batch are kept for waiting reads.

    `make_queue` makes the queue of each kind.
    """

    __slots__ = ("_caps_reads", "_min_reads", "_reads", "_writes")

    def __init__(
        self, min_reads: int, *, caps_reads: bool, make_queue: Callable[[], Queue[T]] = InOrder
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
        batch = writes.take(for_writes)
        for_reads = limit - len(batch)
        if batch and self._caps_reads:
            for_reads = min(for_reads, max(self._min_reads, len(batch) // 2))
        if reads:
            batch += reads.take(for_reads)
        return batch
