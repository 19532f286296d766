"""Who takes commands for books: one writer, or one for each cell."""

import asyncio
from typing import Protocol

from merchant_wallet.book.commands import Submission
from merchant_wallet.book.outcomes import Outcome


class Books(Protocol):
    """All books, as the interface and the pages use them."""

    def submit(self, merchant_id: int, submission: Submission) -> asyncio.Future[Outcome]:
        """Send a command to a book. Raises Unavailable.

        The future returns the outcome once it is committed, or raises Unavailable or CommandFailed.
        """
