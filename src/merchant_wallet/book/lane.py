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
LEAST_READS: Final = 4


class Job:
    """A submission and who waits for its outcome."""

    __slots__ = ("answer", "submission")

    def __init__(self, submission: Submission, answer: asyncio.Future[Outcome]) -> None:
        self.submission = submission
        self.answer = answer


class Lane:
    """What waits for one book."""

    __slots__ = ("_money", "_reads")

    def __init__(self) -> None:
        self._money: deque[Job] = deque()
        self._reads: deque[Job] = deque()

    def __len__(self) -> int:
        return len(self._money) + len(self._reads)

    def put(self, job: Job) -> None:
        """Let a job wait."""
        kind = self._reads if type(job.submission.command) in READS else self._money
        kind.append(job)

    def take(self, limit: int) -> list[Job]:
        """The next batch: at most `limit` jobs, which is 2 or more."""
        money, reads = self._money, self._reads
        money_room = max(limit - min(len(reads), LEAST_READS), limit // 2)
        jobs = [money.popleft() for _ in range(min(len(money), money_room))]
        room = limit - len(jobs)
        if jobs:
            room = min(room, max(LEAST_READS, len(jobs) // 2))
        jobs += [reads.popleft() for _ in range(min(len(reads), room))]
        return jobs
