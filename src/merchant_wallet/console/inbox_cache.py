"""The inbox as the last pages of this process have read it, for the counts in the menu.

Rules:
- A menu's count is at most `KEPT_S` old, or as long as another page takes to read it anew.
- A change by this process is counted at once: it drops what was kept.
- Nothing is read over the page's own cells, so a page names only the cells that it needs itself. A page that
  has taken a cell must not ask: who holds a connection to a cell must not wait for another.
"""

import asyncio
from collections import OrderedDict
from typing import Final

from merchant_wallet.console.request import Connection, ConsoleRequest
from merchant_wallet.reporting.inbox import Asked, Count, Inbox, count_for, read_inbox
from merchant_wallet.web.cells import CellAway, CellSlow
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.inbox_sources import BY_KIND, SOURCES

KEPT_S: Final = 3.0
MAX_KEPT: Final = 200
"""Merchants whose inboxes are kept, besides the platform's."""


class InboxCache:
    """The last read inboxes by merchant; None is the platform's."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int | None, tuple[float, Inbox]] = OrderedDict()
        self._reading: set[int | None] = set()

    async def read(self, request: ConsoleRequest, conn: Connection) -> Inbox:
        """The inbox, a few seconds old at most. While one page reads it anew, others get the last one."""
        merchant_id = request.merchant_id
        kept = self._kept.get(merchant_id)
        if kept is not None and (merchant_id in self._reading or _now_s() - kept[0] < KEPT_S):
            return kept[1]
        return await self.renew(request, conn)

    async def renew(self, request: ConsoleRequest, conn: Connection) -> Inbox:
        """The present inbox."""
        merchant_id = request.merchant_id
        self._reading.add(merchant_id)
        try:
            inbox = await _read(request, conn)
        finally:
            self._reading.discard(merchant_id)
        self._kept[merchant_id] = _now_s(), inbox
        self._kept.move_to_end(merchant_id)
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return inbox

    def drop(self) -> None:
        """Forget all, since something has changed."""
        self._kept.clear()


_caches: Final[dict[str, InboxCache]] = {}


def cache_of(context: PageContext) -> InboxCache:
    """The cache of this site."""
    return _caches.setdefault(context.database_url, InboxCache())


async def close_cache(context: PageContext) -> None:
    """Drop the cache of a site that ends."""
    _caches.pop(context.database_url, None)


async def count_waiting(request: ConsoleRequest, conn: Connection) -> Count:
    """How much waits for the request's person, for the menu."""
    inbox = await cache_of(request.context).read(request, conn)
    return count_for(inbox, BY_KIND, request.operator, request.context.clock())


async def _read(request: ConsoleRequest, conn: Connection) -> Inbox:
    context = request.context
    at_ms, chains = context.clock(), context.settings.shown_chains
    try:
        async with context.cells.open(conn, request.owner) as cells:
            return await read_inbox(Asked(conn, cells, request.merchant_id, at_ms, chains), SOURCES)
    except CellAway as away:
        return Inbox(at_ms, away=(away.name,), slow=(away.name,) if isinstance(away, CellSlow) else ())


def _now_s() -> float:
    return asyncio.get_running_loop().time()
