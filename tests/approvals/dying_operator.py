"""A process that accepts a proposal and is killed: before it asks the book, or after the book has committed.

Run with the database's URL, the proposal's number and `before` or `after`.
"""

import asyncio
import os
import signal
import sys

from merchant_wallet.approvals import proposals
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.writer import Writer


async def main(url: str, proposal_no: int, moment: str) -> None:
    """Accept, and die at the given point."""
    writer = Writer(url)

    async def ask(merchant_id: int, command: Command) -> Outcome:
        if moment == "after":
            await writer.submit(merchant_id, Submission(command))
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("still alive")

    async with await connect(url) as conn:
        await proposals.accept(conn, ask, proposal_no, "operator:bob", now_ms(), roles=["operator"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
