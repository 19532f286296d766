"""A notifier in its own process, which kills itself (SIGKILL) at one step.

Arguments: database URL, the time in milliseconds, the step. A step is before or after what the notifier
calls: `store`, `claim`, `send` or `note`.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar

from psycopg import AsyncConnection
from tests.callbacks.conftest import MASTER_KEY, Clock, make_client
from tests.notifications.scene import SITE
from tests.roles import as_worker

from merchant_wallet.base.chains import CODES
from merchant_wallet.base.db import connect
from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.callbacks.payloads import Payload
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.notifications import outbox
from merchant_wallet.notifications.contacts import WEBHOOK
from merchant_wallet.notifications.transports import WebhookTransport
from merchant_wallet.notifications.worker import Notifier
from merchant_wallet.reporting.cells import reach_one
from merchant_wallet.reporting.inbox import Asked, Inbox, read_inbox
from merchant_wallet.web.inbox_sources import SOURCES

STEPS: Final = tuple(
    f"{when} {what}" for what in ("store", "claim", "send", "note") for when in ("before", "after")
)

T = TypeVar("T")


class KillPoint:
    """Kills this process at a step."""

    def __init__(self, step: str) -> None:
        self._step = step

    def pass_by(self, step: str) -> None:
        """Die here, or go on."""
        if step == self._step:
            os.kill(os.getpid(), signal.SIGKILL)

    async def around(self, what: str, work: Callable[..., Awaitable[T]], *given: Any, **named: Any) -> T:
        """Call `work`, with a step before and a step after it."""
        self.pass_by(f"before {what}")
        done = await work(*given, **named)
        self.pass_by(f"after {what}")
        return done


class KillableClient:
    """A webhook client with a step before and after each request."""

    def __init__(self, kill_point: KillPoint) -> None:
        self._death = kill_point
        self._sender = make_client()

    async def send(self, url: str, payload: Payload) -> Answer:
        """Send a payload to a URL."""
        return await self._death.around("send", self._sender.send, url, payload)


async def work(url: str, now_ms: int, kill_point: KillPoint) -> None:
    """Make one turn."""
    # The notifier calls these by name in the module, so they can be replaced there.
    outbox.store = partial(kill_point.around, "store", outbox.store)
    outbox.claim = partial(kill_point.around, "claim", outbox.claim)
    outbox.record_result = partial(kill_point.around, "note", outbox.record_result)
    clock = Clock(now_ms)

    async def open_connection() -> AsyncConnection:
        return await connect(as_worker(url))

    async def read(conn: AsyncConnection[Any], merchant_id: int | None) -> Inbox:
        return await read_inbox(Asked(conn, reach_one(conn), merchant_id, clock(), CODES), SOURCES)

    transport = WebhookTransport(KillableClient(kill_point), Keyring(MASTER_KEY), SITE)
    notifier = Notifier(open_connection, read, {WEBHOOK: transport}, clock=clock)
    try:
        await notifier.plan_once()
        await notifier.send_once()
    finally:
        await notifier.close()


def main(url: str, now_ms: str, step: str) -> None:
    """What the fork server runs."""
    asyncio.run(work(url, int(now_ms), KillPoint(step)))
