"""Notes when each key was used last, to the minute. The web process writes all of them at once, now and then.

Rules:
- A request only adds its appKey to a set in memory, after its signature was right.
- What can't be written is dropped and logged: requests must go on.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import psycopg
import structlog

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.workers import Connect, WorkerConnection
from merchant_wallet.merchants import app_keys

log = structlog.get_logger("key uses")

INTERVAL_S: Final = 15.0
MINUTE_MS: Final = 60_000


class KeyUses:
    """See the module. `add` is the set's own function: it is on the hot path."""

    def __init__(
        self, connect: Connect, *, clock: Callable[[], int] = now_ms, interval_s: float = INTERVAL_S
    ) -> None:
        self._connection = WorkerConnection(connect)
        self._clock = clock
        self._interval_s = interval_s
        self._app_keys: set[str] = set()
        self.add = self._app_keys.add
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task that writes."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Write what waits, then stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.flush()
        await self._connection.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            await asyncio.shield(self.flush())

    async def flush(self) -> None:
        """Write the keys that were used since the last time."""
        used = sorted(self._app_keys)
        self._app_keys.clear()
        if not used:
            return
        try:
            connection = await self._connection.get()
            await app_keys.note_uses(connection, used, self._clock() // MINUTE_MS * MINUTE_MS)
        except (psycopg.Error, OSError) as error:
            log.warning("uses of keys not noted", count=len(used), error=str(error))
            await self._connection.close()
