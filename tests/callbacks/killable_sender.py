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
from tests.callbacks.conftest import MASTER_KEY, make_client

from merchant_wallet.base.db import connect
from merchant_wallet.callbacks import outbox
from merchant_wallet.callbacks.client import Answer
from merchant_wallet.callbacks.payloads import Payload
from merchant_wallet.callbacks.sender import CallbackSender
from merchant_wallet.merchants.keys import Keyring

STEPS: Final = tuple(f"{when} {what}" for what in ("claim", "send", "note") for when in ("before", "after"))
CLAIM_MS: Final = 300
"""Long for what is sent here, and short to wait for when its messenger has died."""

T = TypeVar("T")


class KillPoint:
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


class KillableClient:
    """A sender with steps around it."""

    def __init__(self, kill_point: KillPoint) -> None:
        self._death = kill_point
        self._sender = make_client()

    async def send(self, url: str, payload: Payload) -> Answer:
        """Send a letter to a URL."""
        return await self._death.around("send", self._sender.send, url, payload)


async def work(url: str, kill_point: KillPoint) -> None:
    """Deliver until nothing is left that could become due within moments."""
    # What a module of ours gives away by name can be stood before without a hook in it.
    outbox.claim = partial(kill_point.around, "claim", outbox.claim)
    outbox.record_success = partial(kill_point.around, "note", outbox.record_success)
    outbox.record_failure = partial(kill_point.around, "note", outbox.record_failure)

    async def open_connection() -> AsyncConnection:
        return await connect(url)

    sender = CallbackSender(
        open_connection, Keyring(MASTER_KEY), KillableClient(kill_point), claim_ms=CLAIM_MS
    )
    try:
        async with await connect(url) as connection:
            while await _count_left(connection):
                await sender.start_due()
                await sender.finish()
    finally:
        await sender.close()


async def _count_left(connection: AsyncConnection) -> int:
    cursor = await connection.execute("select count(*) from callback where state = 'due' and retry_no = 0")
    row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


def main(url: str, step: str, passes: str) -> None:
    """What the fork server runs."""
    asyncio.run(work(url, KillPoint(step, int(passes))))
