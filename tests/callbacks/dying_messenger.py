"""A messenger in a process of its own that kills itself (SIGKILL) at one step, the n-th time it comes there.

Its arguments: database URL, step, how often it passes the step first. Steps are around what the messenger
works with, not inside it: `claim` before and after, `send` before and after, `note` before and after. Without
a step it works until nothing is due and ends.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar

from psycopg import AsyncConnection
from tests.callbacks.conftest import MASTER_KEY, make_sender

from merchant_wallet.base.db import connect
from merchant_wallet.callbacks import outbox
from merchant_wallet.callbacks.content import Letter
from merchant_wallet.callbacks.messenger import Messenger
from merchant_wallet.callbacks.sender import Answer
from merchant_wallet.merchants.keys import Keyring

STEPS: Final = tuple(f"{when} {what}" for what in ("claim", "send", "note") for when in ("before", "after"))
CLAIM_MS: Final = 300
"""Long for what is sent here, and short to wait for when its messenger has died."""

T = TypeVar("T")


class Death:
    """Comes at a step, after it was passed so many times."""

    def __init__(self, step: str, passes: int) -> None:
        self._step = step
        self._left = passes

    def pass_by(self, step: str) -> None:
        """Die here, or go on."""
        if step == self._step:
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    async def around(self, what: str, work: Callable[..., Awaitable[T]], *given: Any, **named: Any) -> T:
        """Do something, with a step before and one after it."""
        self.pass_by(f"before {what}")
        done = await work(*given, **named)
        self.pass_by(f"after {what}")
        return done


class MortalSender:
    """A sender with steps around it."""

    def __init__(self, death: Death) -> None:
        self._death = death
        self._sender = make_sender()

    async def send(self, url: str, letter: Letter) -> Answer:
        """Send a letter to a URL."""
        return await self._death.around("send", self._sender.send, url, letter)


async def work(url: str, death: Death) -> None:
    """Deliver until nothing is left that could become due within moments."""
    # What a module of ours gives away by name can be stood before without a hook in it.
    outbox.claim = partial(death.around, "claim", outbox.claim)
    outbox.note_delivered = partial(death.around, "note", outbox.note_delivered)
    outbox.note_failed = partial(death.around, "note", outbox.note_failed)

    async def open_connection() -> AsyncConnection:
        return await connect(url)

    messenger = Messenger(open_connection, Keyring(MASTER_KEY), MortalSender(death), claim_ms=CLAIM_MS)
    try:
        async with await connect(url) as connection:
            while await _count_left(connection):
                await messenger.start_due()
                await messenger.finish()
    finally:
        await messenger.close()


async def _count_left(connection: AsyncConnection) -> int:
    cursor = await connection.execute("select count(*) from callback where state = 'due' and retry_no = 0")
    row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


def main(url: str, step: str, passes: str) -> None:
    """What the fork server runs."""
    asyncio.run(work(url, Death(step, int(passes))))
