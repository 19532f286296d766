"""The writer's connections: exclusive ones for batches that read first, shared ones for optimistic batches.

Rules:
- A batch that reads first has its connection alone until it ends. Such batches get connections in the order
  in which they asked.
- An optimistic batch is one transaction in one flush. So any number of them, each of another book, can be in
  flight on one shared connection.
- A book whose lock is held elsewhere would delay the others on a shared connection. So there a batch waits
  only briefly for the lock.
- Where the disk is fast, a few shared connections cost least. Where commits wait for the disk, more are
  opened, so that more commits share one sync.
- After a server refused to write, connections that were open then get no new batches.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from merchant_wallet.base.connection_limits import WRITER_EXTRA
from merchant_wallet.base.pool import IDLE_S, Pool
from merchant_wallet.book import store
from merchant_wallet.book.connection import ConnectionLost, PipelineConnection

SHARED: Final = 4
MAX_SHARED: Final = 12
SLOW_COMMIT_S: Final = 0.004
DEEP_PIPELINE: Final = 4
"""A further shared connection is opened if each has this many batches in flight, and they take this long."""
RETRY_S: Final = 5.0
"""After a connection could not be opened, this is the pause before the next try."""
SHARED_SESSION: Final = "set lock_timeout = '250ms'"


class ConnectionPool:
    """Connections to one database, opened on demand."""

    def __init__(self, url: str, connections: int) -> None:
        """At most `connections` exclusive ones, and as many shared ones, but at most 12."""
        self._url = url
        self._exclusive = Pool(self._open, connections, is_usable=_is_usable, min_idle=1)
        self._max_shared = min(MAX_SHARED, connections)
        self._shared: list[PipelineConnection] = []
        self._retired: list[PipelineConnection] = []
        self._shrinking: asyncio.Task[None] | None = None
        self._is_opening = False
        self._grows_after_s = 0.0
        self._extra = asyncio.Semaphore(WRITER_EXTRA)

    async def connect(self) -> None:
        """Connect once, to find out at the start whether the database is away. Raises ConnectionLost."""
        async with self._exclusive.acquire():
            pass

    async def _open(self, session: str = "") -> PipelineConnection:
        return await PipelineConnection.open(self._url, store.STATEMENTS, session=session)

    async def close(self) -> None:
        """Close the connections. Nobody uses them any more."""
        if self._shrinking is not None:
            self._shrinking.cancel()
        await self._exclusive.close()
        for connection in (*self._shared, *self._retired):
            await connection.close()
        self._shared.clear()
        self._retired.clear()

    def acquire(self) -> AbstractAsyncContextManager[PipelineConnection]:
        """A connection for one batch alone, in the order of asking. Raises ConnectionLost."""
        return self._exclusive.acquire()

    @asynccontextmanager
    async def open_extra(self) -> AsyncIterator[PipelineConnection]:
        """A new connection for a look-up. Few can be open at a time. Raises ConnectionLost."""
        async with self._extra:
            connection = await self._open()
            try:
                yield connection
            finally:
                await connection.close()

    async def acquire_shared(self) -> PipelineConnection | None:
        """The shared connection with the fewest batches in flight. None while the first one is being opened.

        Raises ConnectionLost if there is none and none can be opened.
        """
        await self._retire_unusable()
        connection = self._least_busy()
        if self._is_opening or (connection is not None and not self._may_grow(connection)):
            return connection
        self._is_opening = True
        try:
            opened = await self._open(SHARED_SESSION)
        except ConnectionLost:
            if connection is None:
                raise
            self._grows_after_s = time.monotonic() + RETRY_S
            return connection
        finally:
            self._is_opening = False
        self._shared.append(opened)
        if self._shrinking is None:
            self._shrinking = asyncio.create_task(self._shrink())
        return opened

    async def _shrink(self) -> None:
        """Close shared connections that no batch used for a while, except one."""
        while True:
            await asyncio.sleep(IDLE_S)
            before_s = time.monotonic() - IDLE_S
            unused = [
                connection
                for connection in self._shared
                if not len(connection) and connection.last_answer_s < before_s
            ]
            for connection in unused[: max(0, len(self._shared) - 1)]:
                self._shared.remove(connection)
                await connection.close()

    async def _retire_unusable(self) -> None:
        """Take broken and suspect connections out of use. Close each after its last batch is answered."""
        good = [connection for connection in self._shared if _is_usable(connection)]
        if len(good) < len(self._shared):
            self._retired += [connection for connection in self._shared if connection not in good]
            self._shared = good
        for connection in [connection for connection in self._retired if not len(connection)]:
            self._retired.remove(connection)
            await connection.close()

    def _least_busy(self) -> PipelineConnection | None:
        return min(self._shared, key=len, default=None)

    def _may_grow(self, least_busy: PipelineConnection) -> bool:
        count = len(self._shared)
        if not len(least_busy) or count >= self._max_shared or time.monotonic() < self._grows_after_s:
            return False
        return count < SHARED or (len(least_busy) >= DEEP_PIPELINE and least_busy.latency_s > SLOW_COMMIT_S)


def _is_usable(connection: PipelineConnection) -> bool:
    return not (connection.is_broken or connection.is_suspect)
