"""The programs that run now: each web side and each worker side writes down that it is there.

Rules:
- A row says which version the program is, and the newest migration that it knows. So `migrate` does not take
  away what a running program needs, and `doctor` sees that versions differ.
- A program that was not seen for `LIVE_MS` counts as gone. One that stops deletes its row.
- Nothing else depends on these rows. A failure to write them is logged, and the program goes on.
"""

import asyncio
import os
import socket
import uuid
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog
from psycopg import AsyncConnection

from merchant_wallet.audit.rollback.compared_cells import read_clock_ms
from merchant_wallet.base.db import Queries, connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.version import read_version
from merchant_wallet.base.workers import Connect, WorkerConnection, log_failure, repeat
from merchant_wallet.postgres.grants import Side
from merchant_wallet.postgres.migration_files import read_migrations
from merchant_wallet.processes.compared_clock import ComparedClock

log = structlog.get_logger(__name__)

QUERIES: Final = Queries(Path(__file__).with_name("instances.sql"))
INTERVAL_S: Final = 10.0
LIVE_MS: Final = 60_000
KEPT_MS: Final = DAY_MS
GOODBYE_S: Final = 2.0
"""A stop waits no longer to say goodbye."""


class Instance(NamedTuple):
    """A program that runs. `schema_version` is the newest migration that it knows.

    `clock_ahead_ms`: how far its clock is ahead of the database's, None before it was measured.
    """

    side: str
    version: str
    schema_version: int
    host: str
    pid: int
    started_ms: int
    clock_ahead_ms: int | None = None

    def __str__(self) -> str:
        return f"{self.side} {self.version} on {self.host} (pid {self.pid})"


class ContractLimit(NamedTuple):
    """The version up to which contractions hurt nobody; None if nobody runs. `holders` know no later one."""

    version: int | None
    holders: list[str]


class Presence:
    """Writes down, again and again, that this program runs, and how far its clock is from the database's."""

    def __init__(self, connect: Connect, side: Side, clock: ComparedClock) -> None:
        self._home = WorkerConnection(connect)
        self._clock = clock
        self._values: dict[str, Any] = {
            "instance_id": uuid.uuid4(),
            "side": side.value,
            "version": read_version(),
            "schema_version": read_migrations()[-1].version,
            "host": socket.gethostname(),
            "pid": os.getpid(),
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Write until `stop` is set, then delete the row."""
        try:
            await repeat("presence", self._note, stop=stop, interval_s=INTERVAL_S)
            await self._say_goodbye()
        finally:
            await self._home.close()

    async def _say_goodbye(self) -> None:
        try:
            async with asyncio.timeout(GOODBYE_S):
                await (await self._home.get()).execute(QUERIES["delete"].text, self._values)
        except Exception as error:
            log_failure(log, "this instance's row was not deleted; it counts as running for a minute", error)

    async def _note(self) -> None:
        connection = await self._home.get()
        async with connection.transaction():
            await connection.execute(QUERIES["delete_old"].text, {"kept_ms": KEPT_MS})
            ahead_ms = await self._clock.compare(partial(read_clock_ms, connection))
            values = {**self._values, "clock_ahead_ms": ahead_ms}
            await connection.execute(QUERIES["note_seen"].text, values)


async def list_live(home: AsyncConnection[Any]) -> list[Instance]:
    """The programs that run. None on a schema that does not know them yet."""
    if await (await home.execute(QUERIES["has_table"].text)).fetchone() != (True,):
        return []
    rows = await (await home.execute(QUERIES["list_live"].text, {"live_ms": LIVE_MS})).fetchall()
    return [Instance(*row) for row in rows]


def find_contract_limit(url: str) -> ContractLimit:
    """What the programs that run now allow, for callers without an event loop. Raises psycopg.Error."""
    live = asyncio.run(_read_live(url))
    version = min((instance.schema_version for instance in live), default=None)
    return ContractLimit(version, [str(instance) for instance in live if instance.schema_version == version])


async def _read_live(url: str) -> list[Instance]:
    async with await connect(url) as home:
        return await list_live(home)
