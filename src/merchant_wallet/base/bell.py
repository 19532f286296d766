"""The bell of a worker process: a transaction that leaves work for others rings it, and they look at once.

Rules:
- A ring is a hint (NOTIFY). Whoever misses it finds the work in its next turn, at most `REST_S` or
  `LONG_REST_S` later.
- It is sent in the transaction that leaves the work, and heard after its commit. Transfers send none:
  PostgreSQL commits transactions with a NOTIFY one after the other.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final

import psycopg
import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.errors import TransientError

log = structlog.get_logger(__name__)

Connect = Callable[[], Awaitable[AsyncConnection[Any]]]
CHANNEL: Final = "merchant_wallet_work"
RING: Final = f"select pg_notify('{CHANNEL}', '')"
REST_S: Final = 2.0
"""The longest pause of a worker that found nothing to do."""
LONG_REST_S: Final = 5.0
"""The same, of a worker that finds nothing without a ring."""
RETRY_S: Final = 1.0
CHECK_S: Final = 30.0
"""So often a quiet session is used, which tells whether it is still there."""


async def ring(connection: AsyncConnection[Any]) -> None:
    """Ring when this transaction is committed. Raises psycopg.Error."""
    await connection.execute(RING)


class Bell:
    """Wakes the workers of this process. While a database is not listened to, none of them rests."""

    def __init__(self) -> None:
        self._rung: set[asyncio.Event] = set()
        self._deaf = 0

    @property
    def is_heard(self) -> bool:
        """Whether every database of these workers can ring."""
        return not self._deaf

    def add(self, rung: asyncio.Event) -> None:
        """Set this event at each ring, until it is removed."""
        self._rung.add(rung)

    def remove(self, rung: asyncio.Event) -> None:
        """The event's worker has ended."""
        self._rung.discard(rung)

    def ring(self) -> None:
        """Wake all workers."""
        for rung in self._rung:
            rung.set()

    async def listen(self, connect: Connect, stop: asyncio.Event) -> None:
        """Ring when the database does, until `stop` is set."""
        self._deaf += 1
        listening = asyncio.create_task(self._keep_listening(connect))
        try:
            await stop.wait()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            self._deaf -= 1

    async def _keep_listening(self, connect: Connect) -> None:
        while True:
            try:
                async with await connect() as connection:
                    await connection.execute(f"listen {CHANNEL}")
                    await self._hear(connection)
            except (psycopg.Error, OSError, TransientError) as error:
                log.debug("nobody can ring; the workers look more often", reason=str(error))
            await asyncio.sleep(RETRY_S)

    async def _hear(self, connection: AsyncConnection[Any]) -> None:
        self._deaf -= 1
        try:
            # Something may have been left before this session listened.
            self.ring()
            while True:
                async for _ in connection.notifies(timeout=CHECK_S):
                    self.ring()
                await connection.execute("select 1")
        finally:
            self._deaf += 1


current_bell: Final[ContextVar[Bell | None]] = ContextVar("current_bell", default=None)
"""The bell of the workers that this task starts. None where nobody listens: there they don't rest."""
