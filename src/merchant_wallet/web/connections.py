"""The pages' own few connections to the database.

Rules: pages never take the connections that money moves over, no page's question runs longer than
`STATEMENT_TIMEOUT_MS`, and none waits longer than `LOCK_TIMEOUT_MS` for a lock: a book that is stuck keeps no
other merchant's pages from their connections. A connection that something went wrong with is not used again.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import psycopg
from psycopg import AsyncConnection

from merchant_wallet.base import db
from merchant_wallet.base.pool import Pool, PoolBusy, is_idle

STATEMENT_TIMEOUT_MS: Final = 10_000
LOCK_TIMEOUT_MS: Final = 3_000
TAKE_TIMEOUT_S: Final = 5.0


class Away(db.TransientError):
    """The database can't be asked right now."""


class Connections:
    """At most `limit` connections, each for one request at a time."""

    def __init__(self, url: str, limit: int = 4) -> None:
        self._url = url
        self._pool = Pool(self._open, limit, is_usable=is_idle)

    @asynccontextmanager
    async def take(self) -> AsyncIterator[AsyncConnection]:
        """A connection that commits by itself. Raises Away when none is to be had or it breaks."""
        try:
            async with self._pool.acquire(TAKE_TIMEOUT_S) as connection:
                yield connection
        except PoolBusy:
            raise Away("all connections of the pages are busy") from None
        except psycopg.Error as error:
            if not (isinstance(error, psycopg.OperationalError) or db.is_database_away(error)):
                raise
            # What broke one connection has most likely broken those that wait, and they would fail in turn.
            await self._pool.close()
            raise Away(str(error)) from error

    async def _open(self) -> AsyncConnection:
        connection = await db.connect(self._url)
        try:
            await connection.execute(
                f"set statement_timeout = {STATEMENT_TIMEOUT_MS}; set lock_timeout = {LOCK_TIMEOUT_MS}"
            )
        except BaseException:
            await connection.close()
            raise
        return connection

    async def close(self) -> None:
        """Close what is open."""
        await self._pool.close()
