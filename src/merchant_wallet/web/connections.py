"""The database connections of the pages.

Rules:
- Pages have their own connections. They never use those of the operations.
- People take turns (`base.fair_places`), so one person's requests do not keep others waiting. Requests of
  which nobody knows the person take none of their connections.
- A page's query runs for at most `STATEMENT_TIMEOUT_MS`. It waits for a lock for at most `LOCK_TIMEOUT_MS`.
  So a book whose lock is held can't keep the connections from other merchants' pages.
- A connection is not used again after an error.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import psycopg
from psycopg import AsyncConnection

from merchant_wallet.base import db
from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.fair_places import SERVICE, FairPlaces
from merchant_wallet.base.fair_queue import Owner
from merchant_wallet.base.pool import Pool, PoolBusy, is_idle

STATEMENT_TIMEOUT_MS: Final = 10_000
LOCK_TIMEOUT_MS: Final = 3_000
TAKE_TIMEOUT_S: Final = 5.0
PAGE_CONNECTIONS: Final = 4
STRANGER_PLACES: Final = 3
"""Strangers are one group, which never holds all places. So they open two connections."""


class Away(TransientError):
    """The database can't be used now."""


class Connections:
    """At most `limit` connections, each for one request at a time."""

    def __init__(self, url: str, limit: int = PAGE_CONNECTIONS) -> None:
        self._url = url
        self._places = FairPlaces(limit)
        self._pool = Pool(self._open, limit, is_usable=is_idle)

    @asynccontextmanager
    async def take(self, owner: Owner = SERVICE) -> AsyncIterator[AsyncConnection]:
        """A connection in autocommit mode, when it is the owner's turn. Raises Away if no connection is free
        in time or it breaks.
        """
        try:
            async with self._places.hold(owner, TAKE_TIMEOUT_S), self._pool.acquire() as connection:
                yield connection
        except PoolBusy:
            raise Away("all connections of the pages are busy") from None
        except psycopg.Error as error:
            if not (isinstance(error, psycopg.OperationalError) or db.is_database_away(error)):
                raise
            # The same error has probably broken the idle connections too. Each would fail when it is used.
            await self._pool.close()
            raise Away(str(error)) from error

    async def _open(self) -> AsyncConnection:
        connection = await db.connect(self._url)
        try:
            await limit_statements(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()


async def limit_statements(connection: AsyncConnection) -> None:
    """Set the limits of the pages' statements for a new connection."""
    limits = f"set statement_timeout = {STATEMENT_TIMEOUT_MS}; set lock_timeout = {LOCK_TIMEOUT_MS}"
    await connection.execute(limits.encode())
