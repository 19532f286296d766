"""A callback sender in its own process, which kills itself (SIGKILL) at one step.

Arguments: database URL, step, how often the step is passed first. A step is before or after what the sender
calls: `claim`, `send` or `note`. Without a step it works until nothing is due, and ends.
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
from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.callbacks.payloads import Payload
from merchant_wallet.callbacks.sender import CallbackSender
from merchant_wallet.merchants.keys import Keyring

STEPS: Final = tuple(f"{when} {what}" for what in ("claim", "send", "note") for when in ("before", "after"))
CLAIM_MS: Final = 300
"""Long enough for a delivery here, and short enough to wait for after its sender has died."""

T = TypeVar("T")


class KillPoint:
    """Kills this process at a step, after it was passed a number of times."""

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
        """Call `work`, with a step before and a step after it."""
        self.pass_by(f"before {what}")
        done = await work(*given, **named)
        self.pass_by(f"after {what}")
        return done


class KillableClient:
    """A callback client with a step before and after each request."""

    def __init__(self, kill_point: KillPoint) -> None:
        self._death = kill_point
        self._sender = make_client()

    async def send(self, url: str, payload: Payload) -> Answer:
        """Send a payload to a URL."""
        return await self._death.around("send", self._sender.send, url, payload)


async def work(url: str, kill_point: KillPoint) -> None:
    """Deliver until nothing is due and nothing will be due within moments."""
    # The sender calls these by name in the module, so they can be replaced there.
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
