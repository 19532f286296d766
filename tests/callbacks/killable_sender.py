"""A callback sender that tests kill at a step, inside the test's process or in one of its own.

A step is before or after what the sender calls: `claim`, `send` or `note`. It is passed a number of times
first. Without a step the sender works until nothing is due, and ends.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import pytest
from psycopg import AsyncConnection
from tests.callbacks.conftest import MASTER_KEY, make_client
from tests.crash_points import IsDue, OwnProcess, around, make_step

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect
from merchant_wallet.callbacks import outbox
from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.callbacks.payloads import Payload
from merchant_wallet.callbacks.sender import CallbackSender
from merchant_wallet.merchants.keys import Keyring

STEPS: Final = tuple(f"{when} {what}" for what in ("claim", "send", "note") for when in ("before", "after"))
CLAIM_MS: Final = 300
"""Long enough for a delivery here, and short enough to wait for after its sender has died."""
PAUSE_S: Final = 0.02


def at(step: str, passes: int) -> IsDue:
    """Recognises a step after it was passed a number of times."""
    left = passes

    def is_due(when: str, what: str) -> bool:
        nonlocal left
        is_here = f"{when} {what}" == step
        left -= is_here
        return is_here and left < 0

    return is_due


class KillableClient:
    """A callback client with a step before and after each request."""

    def __init__(self) -> None:
        self._sender = make_client()

    async def send(self, url: str, payload: Payload) -> Answer:
        """Send a payload to a URL."""
        return await around("send", partial(self._sender.send, url, payload))


async def sleep() -> None:
    """Let a moment of real time pass."""
    await asyncio.sleep(PAUSE_S)


async def work(
    url: str, clock: Callable[[], int] = now_ms, pause: Callable[[], Awaitable[None]] = sleep
) -> None:
    """Deliver until nothing is due and nothing will be due within moments. `pause` lets time pass."""

    async def open_connection() -> AsyncConnection:
        return await connect(url)

    sender = CallbackSender(
        open_connection, Keyring(MASTER_KEY), KillableClient(), claim_ms=CLAIM_MS, clock=clock
    )
    with pytest.MonkeyPatch.context() as patch:
        # The sender calls these by name in the module, so they can be replaced there.
        for name, what in (("claim", "claim"), ("record_success", "note"), ("record_failure", "note")):
            patch.setattr(outbox, name, make_step(what, getattr(outbox, name)))
        try:
            async with await connect(url) as connection:
                while await _count_left(connection):
                    if not await sender.start_due():
                        # Claims of the dead must expire.
                        await pause()
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
    asyncio.run(OwnProcess(at(step, int(passes))).run_to_death(work(url)))
