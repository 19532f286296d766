"""The writer's connections: some for batches that read first, others shared by those that are foreseen.

Rules: a batch that reads first has its connection to itself from beginning to end, and such batches get one
in the order in which they asked. A foreseen batch is one transaction in one flush, so any number of them,
each of another book, follow each other on a shared connection; there a book whose lock is held elsewhere
would make others wait, so it is waited for only shortly. A few shared connections are the least work where
the disk is fast; where batches wait for its flushes, more are opened, which gather in one flush. Once a
server refused to write, no new batch goes to a connection that was open by then.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from merchant_wallet.base.capacity import WRITER_EXTRA
from merchant_wallet.base.pool import IDLE_S, Pool
from merchant_wallet.book import store
from merchant_wallet.book.connection import ConnectionLost, PipelineConnection

SHARED: Final = 4
MAX_SHARED: Final = 12
SLOW_COMMIT_S: Final = 0.004
DEEP_PIPELINE: Final = 4
"""Where so many batches wait on each connection, and usually take so long, a further one is worth it."""
RETRY_S: Final = 5.0
"""So long no further connection is tried after one could not be had."""
SHARED_SESSION: Final = "set lock_timeout = '250ms'"


class ConnectionPool:
    """Connections to one database, opened when they are needed."""

    def __init__(self, url: str, connections: int) -> None:
        """At most `connections` for batches that read, as many, but at most 12, that are shared."""
        self._url = url
        self._exclusive = Pool(self._open, connections, is_usable=_is_usable, min_idle=1)
        self._most_shared = min(MAX_SHARED, connections)
        self._shared: list[PipelineConnection] = []
        self._retired: list[PipelineConnection] = []
        self._shrinking: asyncio.Task[None] | None = None
        self._is_opening = False
        self._grows_after_s = 0.0
        self._extra = asyncio.Semaphore(WRITER_EXTRA)

    async def connect(self) -> None:
        """Connect once, so that a database that is away is known at the start. Raises LinkLost."""
        async with self._exclusive.acquire():
            pass

    async def _open(self, session: str = "") -> PipelineConnection:
        return await PipelineConnection.open(self._url, store.STATEMENTS, session=session)

    async def close(self) -> None:
        """Close the connections; nobody uses them any more."""
        if self._shrinking is not None:
            self._shrinking.cancel()
        await self._exclusive.close()
        for connection in (*self._shared, *self._retired):
            await connection.close()
        self._shared.clear()
        self._retired.clear()

    def acquire(self) -> AbstractAsyncContextManager[PipelineConnection]:
        """A connection for one batch alone, once it is this batch's turn. Raises ConnectionLost."""
        return self._exclusive.acquire()

    @asynccontextmanager
    async def open_extra(self) -> AsyncIterator[PipelineConnection]:
        """A new connection to look something up; there are few at a time. Raises LinkLost."""
        async with self._extra:
            connection = await self._open()
            try:
                yield connection
            finally:
                await connection.close()

    async def acquire_shared(self) -> PipelineConnection | None:
        """The shared connection with the fewest batches under way; None while the first is being opened.

        Raises LinkLost when there is none and none can be had.
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
        """Close shared connections that no batch used for a while, all but one."""
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
        """Give no more batches to broken or spent links; close each once its last batch is answered."""
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
        if not len(least_busy) or count >= self._most_shared or time.monotonic() < self._grows_after_s:
            return False
        return count < SHARED or (len(least_busy) >= DEEP_PIPELINE and least_busy.latency_s > SLOW_COMMIT_S)


def _is_usable(connection: PipelineConnection) -> bool:
    return not (connection.is_broken or connection.is_suspect)
