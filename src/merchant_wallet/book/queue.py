"""The commands that wait: a queue for each book, and groups taken from all of them.

Rules:
- A book's reads and writes share its batches fairly (see `base.fair_queue`).
- Books take turns: first come, first served. A group gives each book a fair share of its places. What one
  book does not need, the others get.
- A book whose batch is under way waits. So its commands are answered in order, and one book can fill at most
  one group at a time.
"""

from collections import deque
from typing import Final

from merchant_wallet.base.fair_queue import FairQueue
from merchant_wallet.book import commands
from merchant_wallet.book.batch import Batch, PendingCommand

READS: Final = frozenset(
    {commands.ReadBalances, commands.ReadSubUser, commands.ReadWithdrawal, commands.QuoteWithdrawal}
)
MIN_READS: Final = 4
MIN_SHARE: Final = 2
"""A batch has at least this many places, so that neither a book's reads nor its writes take all of them."""


class CommandQueue(FairQueue[PendingCommand]):
    """The commands that wait for one book."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(MIN_READS, caps_reads=True)

    def add(self, pending: PendingCommand) -> None:
        """Add a command."""
        self.put(pending, is_read=type(pending.submission.command) in READS)


class CommandQueues:
    """The queues of all books."""

    def __init__(self) -> None:
        self._queues: dict[int, CommandQueue] = {}
        self._ready: deque[int] = deque()
        self._under_way: dict[int, int] = {}

    def __len__(self) -> int:
        """How many commands wait, over all books."""
        return sum(map(len, self._queues.values()))

    def __bool__(self) -> bool:
        """Whether a group can be taken."""
        return bool(self._ready)

    @property
    def is_idle(self) -> bool:
        """Whether no command waits or is under way."""
        return not self._ready and not self._under_way

    def count_waiting(self, merchant_id: int) -> int:
        """How many commands wait for one book."""
        queue = self._queues.get(merchant_id)
        return 0 if queue is None else len(queue)

    def add(self, merchant_id: int, pending: PendingCommand) -> None:
        """Let a command wait for its book."""
        queue = self._queues.get(merchant_id)
        if queue is None:
            queue = self._queues[merchant_id] = CommandQueue()
            if merchant_id not in self._under_way:
                self._ready.append(merchant_id)
        queue.add(pending)

    def take_group(self, limit: int) -> list[Batch]:
        """The next group: batches of different books, of at most `limit` commands together."""
        ready, books = self._ready, max(1, limit // MIN_SHARE)
        taken = [ready.popleft() for _ in range(min(len(ready), books))]
        return [
            self._take_batch(merchant_id, places)
            for merchant_id, places in zip(taken, self._share(taken, limit), strict=True)
        ]

    def _share(self, taken: list[int], limit: int) -> list[int]:
        """How many places each book gets. Those that need fewer than their share leave the rest to others."""
        places = dict.fromkeys(taken, 0)
        left = limit
        by_need = sorted(taken, key=self.count_waiting)
        for number, merchant_id in enumerate(by_need):
            share = max(MIN_SHARE, left // (len(by_need) - number))
            places[merchant_id] = min(share, self.count_waiting(merchant_id))
            left -= places[merchant_id]
        return list(places.values())

    def _take_batch(self, merchant_id: int, places: int) -> Batch:
        queue = self._queues[merchant_id]
        pending = queue.take(max(places, MIN_SHARE))
        self._under_way[merchant_id] = len(pending)
        if not queue:
            del self._queues[merchant_id]
        return Batch(merchant_id, pending)

    def finish(self, merchant_id: int, count: int) -> None:
        """Commands of a book are answered. After the last of its batch the book may be taken again."""
        left = self._under_way[merchant_id] - count
        if left:
            self._under_way[merchant_id] = left
            return
        del self._under_way[merchant_id]
        if merchant_id in self._queues:
            self._ready.append(merchant_id)
