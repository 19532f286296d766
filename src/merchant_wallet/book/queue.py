"""The queue of one book's commands: writes, and reads beside them (see `base.fair_queue`)."""

import asyncio
from typing import Final

from merchant_wallet.base.fair_queue import FairQueue
from merchant_wallet.book import commands
from merchant_wallet.book.commands import Submission
from merchant_wallet.book.outcomes import Outcome

READS: Final = frozenset(
    {commands.ReadBalances, commands.ReadSubUser, commands.ReadWithdrawal, commands.QuoteWithdrawal}
)
MIN_READS: Final = 4


class PendingCommand:
    """A submission, and the future of its outcome."""

    __slots__ = ("future", "submission")

    def __init__(self, submission: Submission, future: asyncio.Future[Outcome]) -> None:
        self.submission = submission
        self.future = future


class CommandQueue(FairQueue[PendingCommand]):
    """The commands that wait for one book."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(MIN_READS, caps_reads=True)

    def add(self, pending: PendingCommand) -> None:
        """Add a command."""
        self.put(pending, is_read=type(pending.submission.command) in READS)
