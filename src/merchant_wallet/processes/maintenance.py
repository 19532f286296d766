"""Maintenance: tasks that make things in advance or delete old ones, so that the service can run for years.

Rules: each task may run at any time, twice, and in several processes at once. A task that fails is logged and
does not stop the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import is_database_away
from merchant_wallet.base.workers import Connect, WorkerConnection, log_failure, repeat

INTERVAL_S: Final = 60.0

Task = Callable[[AsyncConnection, int], Awaitable[object]]
"""A regular task. Takes a connection and the time in milliseconds."""

log = structlog.get_logger(__name__)


class TasksFailed(Exception):
    """Some tasks failed this time; each was logged."""


class Maintenance:
    """Worker that runs each of its tasks once a minute. Set `wake` to make it run them at once."""

    def __init__(
        self, connect: Connect, tasks: Mapping[str, Task], *, clock: Callable[[], int] = now_ms
    ) -> None:
        self._worker_connection = WorkerConnection(connect)
        self.wake = asyncio.Event()
        self._tasks = tasks
        self._clock = clock

    async def run(self, stop: asyncio.Event, *, interval_s: float = INTERVAL_S) -> None:
        """Run the tasks until `stop` is set, then close the connection."""
        try:
            await repeat("maintenance", self.do_all, stop=stop, interval_s=interval_s, wake=self.wake)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._worker_connection.close()

    async def do_all(self) -> None:
        """Run every task once. Raises TasksFailed at the end with the names of those that failed.

        Raises psycopg.Error at once if the database is away.
        """
        failed = []
        for name, task in self._tasks.items():
            connection = await self._worker_connection.get()
            try:
                await task(connection, self._clock())
            except Exception as error:
                if is_database_away(error):
                    raise
                # The other tasks must still run. The loop tries this one again.
                log_failure(log, "maintenance task failed", error, task=name)
                failed.append(name)
        if failed:
            raise TasksFailed(", ".join(failed))


def make_id_range_task(
    find_short: Callable[[AsyncConnection], Awaitable[Sequence[int]]],
    allocate: Callable[[AsyncConnection, AsyncConnection, int], Awaitable[object]],
    home: WorkerConnection | None = None,
) -> Task:
    """The maintenance task that gives another id range to each book of a cell that runs out of ids.

    `find_short` finds these books' merchants in a cell. `allocate` takes connections to home and to the cell.
    Without `home` the cell is home's own.
    """

    async def keep_ranges(connection: AsyncConnection, at_ms: int) -> None:
        for merchant_id in await find_short(connection):
            await allocate(await home.get() if home else connection, connection, merchant_id)
            log.info("further id range given", merchant_id=merchant_id)

    return keep_ranges
