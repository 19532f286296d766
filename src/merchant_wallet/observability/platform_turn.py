"""Which process shows the metrics of the platform: the one whose database session has the advisory lock.

Rules:
- A process asks when it is scraped. Of all that are scraped, one has the lock, so each of these metrics is
  seen once.
- The lock ends with its session. So after a kill the next process that is scraped takes over.
- A process that is no longer scraped gives the lock back (`Metrics` closes its connection).
- Nothing but this page depends on the lock.
"""

from pathlib import Path
from typing import Final

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("platform_turn.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}


class PlatformTurn:
    """This process's turn. It belongs to one connection."""

    def __init__(self) -> None:
        self._holder: AsyncConnection | None = None

    @property
    def is_held(self) -> bool:
        """Whether it is this process's turn, as far as it knows."""
        return self._holder is not None and not self._holder.closed

    async def take(self, connection: AsyncConnection) -> bool:
        """Whether it is this process's turn. Raises psycopg.Error."""
        if self._holder is not connection:
            self._holder = None
            row = await (await connection.execute(_TEXTS["take_turn"])).fetchone()
            if row is not None and row[0]:
                self._holder = connection
        return self._holder is not None

    async def give_back(self) -> None:
        """Let another process have the turn. Raises psycopg.Error."""
        connection, self._holder = self._holder, None
        if connection is not None and not connection.closed:
            await connection.execute(_TEXTS["give_turn_back"])
