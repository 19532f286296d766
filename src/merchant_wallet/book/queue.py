"""The queue of one book: commands that move something, and reads that wait beside them.

Rules: first come, first served within each kind. While money waits, reads get at most half as many places
in a batch as it takes, but always a few: a flood of reads can't starve transfers, nor transfers reads.
"""

import asyncio
from collections import deque
from typing import Final

from merchant_wallet.book import commands
from merchant_wallet.book.commands import Submission
from merchant_wallet.book.outcomes import Outcome

READS: Final = frozenset(
    {commands.ReadBalances, commands.ReadSubUser, commands.ReadWithdrawal, commands.QuoteWithdrawal}
)
MIN_READS: Final = 4


class PendingCommand:
    """A submission and who waits for its outcome."""

    __slots__ = ("future", "submission")

    def __init__(self, submission: Submission, future: asyncio.Future[Outcome]) -> None:
        self.submission = submission
        self.future = future


class CommandQueue:
    """What waits for one book."""

    __slots__ = ("_reads", "_writes")

    def __init__(self) -> None:
        self._writes: deque[PendingCommand] = deque()
        self._reads: deque[PendingCommand] = deque()

    def __len__(self) -> int:
        return len(self._writes) + len(self._reads)

    def put(self, pending: PendingCommand) -> None:
        """Let a job wait."""
        kind = self._reads if type(pending.submission.command) in READS else self._writes
        kind.append(pending)

    def take_batch(self, limit: int) -> list[PendingCommand]:
        """The next batch: at most `limit` jobs, which is 2 or more."""
        writes, reads = self._writes, self._reads
        writes_room = max(limit - min(len(reads), MIN_READS), limit // 2)
        batch = [writes.popleft() for _ in range(min(len(writes), writes_room))]
        room = limit - len(batch)
        if batch:
            room = min(room, max(MIN_READS, len(batch) // 2))
        batch += [reads.popleft() for _ in range(min(len(reads), room))]
        return batch
