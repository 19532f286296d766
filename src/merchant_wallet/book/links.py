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
from contextlib import asynccontextmanager
from typing import Final

from merchant_wallet.base.capacity import WRITER_ASIDE
from merchant_wallet.base.idle import IDLE_S, Idle
from merchant_wallet.book import store
from merchant_wallet.book.link import Link, LinkLost

SHARED: Final = 4
MOST_SHARED: Final = 12
SLOW_S: Final = 0.004
DEEP: Final = 4
"""Where so many batches wait on each connection, and usually take so long, a further one is worth it."""
RETRY_S: Final = 5.0
"""So long no further connection is tried after one could not be had."""
SHARED_SESSION: Final = "set lock_timeout = '250ms'"


class Links:
    """Connections to one database, opened when they are needed."""

    def __init__(self, url: str, connections: int) -> None:
        """At most `connections` for batches that read, as many, but at most 12, that are shared."""
        self._url = url
        self._turns = asyncio.Semaphore(connections)
        self._idle: Idle[Link] = Idle(Link.close, least=1)
        self._most_shared = min(MOST_SHARED, connections)
        self._shared: list[Link] = []
        self._retired: list[Link] = []
        self._shrinking: asyncio.Task[None] | None = None
        self._is_opening = False
        self._grows_after_s = 0.0
        self._aside = asyncio.Semaphore(WRITER_ASIDE)

    async def connect(self) -> None:
        """Connect once, so that a database that is away is known at the start. Raises LinkLost."""
        self._idle.put(await self._open())

    async def _open(self, session: str = "") -> Link:
        return await Link.open(self._url, store.STATEMENTS, session=session)

    async def close(self) -> None:
        """Close the connections; nobody uses them any more."""
        if self._shrinking is not None:
            self._shrinking.cancel()
        await self._idle.close()
        for link in (*self._shared, *self._retired):
            await link.close()
        self._shared.clear()
        self._retired.clear()

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Link]:
        """A connection for one batch alone, once it is this batch's turn. Raises LinkLost."""
        async with self._turns:
            link = await self._take()
            try:
                yield link
            finally:
                if link.broken or link.spent:
                    await link.close()
                else:
                    self._idle.put(link)

    async def _take(self) -> Link:
        while (link := self._idle.take()) is not None:
            if not (link.broken or link.spent):
                return link
            await link.close()
        return await self._open()

    @asynccontextmanager
    async def open_aside(self) -> AsyncIterator[Link]:
        """A new connection to look something up; there are few at a time. Raises LinkLost."""
        async with self._aside:
            link = await self._open()
            try:
                yield link
            finally:
                await link.close()

    async def share(self) -> Link | None:
        """The shared connection with the fewest batches under way; None while the first is being opened.

        Raises LinkLost when there is none and none can be had.
        """
        await self._sort_out()
        link = self._least_busy()
        if self._is_opening or (link is not None and not self._may_grow(link)):
            return link
        self._is_opening = True
        try:
            opened = await self._open(SHARED_SESSION)
        except LinkLost:
            if link is None:
                raise
            self._grows_after_s = time.monotonic() + RETRY_S
            return link
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
            unused = [link for link in self._shared if not len(link) and link.answered_s < before_s]
            for link in unused[: max(0, len(self._shared) - 1)]:
                self._shared.remove(link)
                await link.close()

    async def _sort_out(self) -> None:
        """Give no more batches to broken or spent links; close each once its last batch is answered."""
        good = [link for link in self._shared if not (link.broken or link.spent)]
        if len(good) < len(self._shared):
            self._retired += [link for link in self._shared if link not in good]
            self._shared = good
        for link in [link for link in self._retired if not len(link)]:
            self._retired.remove(link)
            await link.close()

    def _least_busy(self) -> Link | None:
        return min(self._shared, key=len, default=None)

    def _may_grow(self, least_busy: Link) -> bool:
        count = len(self._shared)
        if not len(least_busy) or count >= self._most_shared or time.monotonic() < self._grows_after_s:
            return False
        return count < SHARED or (len(least_busy) >= DEEP and least_busy.takes_s > SLOW_S)
