"""The writer's connections: some for batches that read first, others shared by those that are foreseen.

Rules: a batch that reads first has its connection to itself from beginning to end, and such batches get one
in the order in which they asked. A foreseen batch is one transaction in one flush, so any number of them,
each of another book, follow each other on a shared connection; there a book whose lock is held elsewhere
would make others wait, so it is waited for only shortly.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from merchant_wallet.book import store
from merchant_wallet.book.link import Link

SHARED: Final = 4
SHARED_SESSION: Final = "set lock_timeout = '250ms'"


class Links:
    """Connections to one database, opened when they are needed."""

    def __init__(self, url: str, connections: int) -> None:
        """At most `connections`, but one of each kind at least."""
        self._url = url
        self._shared_limit = max(1, min(SHARED, connections // 2))
        self._turns = asyncio.Semaphore(max(1, connections - self._shared_limit))
        self._idle: list[Link] = []
        self._shared: list[Link] = []
        self._opening = asyncio.Lock()

    async def open(self) -> Link:
        """A further connection, which is the caller's. Raises LinkLost."""
        return await Link.open(self._url, store.STATEMENTS)

    async def connect(self) -> None:
        """Connect once, so that a database that is away is known at the start. Raises LinkLost."""
        self._idle.append(await self.open())

    async def close(self) -> None:
        """Close the connections; nobody uses them any more."""
        for link in (*self._idle, *self._shared):
            await link.close()
        self._idle.clear()
        self._shared.clear()

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Link]:
        """A connection for one batch alone, once it is this batch's turn. Raises LinkLost."""
        async with self._turns:
            link = await self._take()
            try:
                yield link
            finally:
                if link.broken:
                    await link.close()
                else:
                    self._idle.append(link)

    async def _take(self) -> Link:
        while self._idle:
            link = self._idle.pop()
            if not link.broken:
                return link
            await link.close()
        return await self.open()

    async def share(self) -> Link:
        """The shared connection with the fewest batches under way. Raises LinkLost."""
        broken = [link for link in self._shared if link.broken]
        if broken:
            self._shared = [link for link in self._shared if not link.broken]
            for lost in broken:
                await lost.close()
        link = self._least_busy()
        if link is None or (self._may_grow(link) and not self._opening.locked()):
            async with self._opening:
                link = self._least_busy()
                if link is None or self._may_grow(link):
                    link = await Link.open(self._url, store.STATEMENTS, session=SHARED_SESSION)
                    self._shared.append(link)
        return link

    def _least_busy(self) -> Link | None:
        return min([link for link in self._shared if not link.broken], key=len, default=None)

    def _may_grow(self, least_busy: Link) -> bool:
        return len(least_busy) > 0 and len(self._shared) < self._shared_limit
