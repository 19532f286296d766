"""A pool of connections. Each is used by one task at a time.

Rules:
- At most `limit` connections are open. Tasks that find none free wait in the order of asking.
- A connection is opened when it is needed. If that fails, the task that asked gets the error at once. The
  next task tries again.
- A connection is checked when it is given out and when it comes back, without a query to the server. An
  unusable one is closed.
- The connection that was used last is given out first, so the others grow old. Connections unused for
  `IDLE_S` are closed, except `min_idle` of them.

Decision 0069 says why this is not `psycopg_pool`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, Protocol, TypeVar

from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from merchant_wallet.base import db
from merchant_wallet.base.errors import TransientError

IDLE_S: Final = 30.0
"""A connection that was not used for this long is closed."""


class Closable(Protocol):
    """The interface of a pooled connection."""

    def close(self) -> Coroutine[Any, Any, None]:
        """Close it. A second call does nothing."""


C = TypeVar("C", bound=Closable)


class PoolBusy(TransientError):
    """No connection became free in time."""


class Pool(Generic[C]):
    """At most `limit` connections, opened by `open_connection`. `min_idle` of them stay open when unused."""

    def __init__(
        self,
        open_connection: Callable[[], Awaitable[C]],
        limit: int,
        *,
        is_usable: Callable[[C], bool],
        min_idle: int = 0,
        idle_s: float | None = None,
    ) -> None:
        self._open = open_connection
        self._is_usable = is_usable
        self._min_idle = min_idle
        self._idle_s = IDLE_S if idle_s is None else idle_s
        self._free = asyncio.Semaphore(limit)
        self._idle: list[tuple[float, C]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def acquire(self, timeout_s: float | None = None) -> AsyncIterator[C]:
        """A connection for one task. Raises PoolBusy if none is free in time, and what opening raises."""
        try:
            await asyncio.wait_for(self._free.acquire(), timeout_s)
        except TimeoutError:
            raise PoolBusy("all connections are busy") from None
        try:
            connection = await self._take()
            try:
                yield connection
            finally:
                await self._give_back(connection)
        finally:
            self._free.release()

    async def _take(self) -> C:
        while self._idle:
            _, connection = self._idle.pop()
            if self._is_usable(connection):
                return connection
            await connection.close()
        return await self._open()

    async def _give_back(self, connection: C) -> None:
        if not self._is_usable(connection):
            await connection.close()
            return
        self._idle.append((time.monotonic(), connection))
        self._plan_shrinking()

    def _plan_shrinking(self) -> None:
        if self._timer is None and len(self._idle) > self._min_idle:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._shrink)

    def _shrink(self) -> None:
        self._timer = None
        before_s = time.monotonic() - self._idle_s
        while len(self._idle) > self._min_idle and self._idle[0][0] <= before_s:
            task = asyncio.create_task(self._idle.pop(0)[1].close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        self._plan_shrinking()

    async def close(self) -> None:
        """Close the free connections. The pool may be used again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._idle:
            await self._idle.pop()[1].close()
        await asyncio.gather(*self._closing)


def is_idle(connection: AsyncConnection) -> bool:
    """Whether a connection is good for the next task: open, in no transaction, on a server that writes."""
    return db.is_open(connection) and connection.info.transaction_status == TransactionStatus.IDLE
