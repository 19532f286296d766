"""Upkeep: what must be made ahead or cleared away so that the rest can run for years.

Rules: each duty is safe to do at any time, twice, and by several processes at once; one that fails is logged
and hinders no other. Nonces live in one partition per UTC day and go a whole day at a time: kept at least 24
hours and always longer than twice the tolerance for timestamps, after which a replayed request is refused for
its age.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import structlog
from psycopg import AsyncConnection, errors, sql

from merchant_wallet import db
from merchant_wallet.book.state import DAY_MS
from merchant_wallet.clock import now_ms
from merchant_wallet.db import Queries, is_database_away
from merchant_wallet.workers import Connect, Line, log_failure, repeat

INTERVAL_S: Final = 60.0
DAYS_AHEAD: Final = 1
DAY_S: Final = DAY_MS // 1000
DROP_LOCK_TIMEOUT_MS: Final = 200

QUERIES: Final = Queries(Path(__file__).with_name("upkeep.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

Duty = Callable[[AsyncConnection, int], Awaitable[object]]
"""Something to be done regularly, given a connection and the present moment in milliseconds."""

log = structlog.get_logger(__name__)


class DutiesFailed(Exception):
    """Some duties failed this time; each was logged."""


class Upkeep:
    """The worker that does each of its duties once a minute."""

    def __init__(
        self, connect: Connect, duties: Mapping[str, Duty], *, clock: Callable[[], int] = now_ms
    ) -> None:
        self._line = Line(connect)
        self._duties = duties
        self._clock = clock

    async def run(self, stop: asyncio.Event, *, interval_s: float = INTERVAL_S) -> None:
        """Do the duties until told to stop, then close the connection."""
        try:
            await repeat("upkeep", self.do_all, stop=stop, interval_s=interval_s)
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._line.close()

    async def do_all(self) -> None:
        """Do every duty once. Raises DutiesFailed at the end, naming those that failed.

        Raises psycopg.Error at once when the database is away.
        """
        failed = []
        for name, duty in self._duties.items():
            connection = await self._line.get()
            try:
                await duty(connection, self._clock())
            except Exception as error:
                if is_database_away(error):
                    raise
                # The other duties must be done all the same; the loop tries this one again.
                log_failure(log, "duty failed", error, duty=name)
                failed.append(name)
        if failed:
            raise DutiesFailed(", ".join(failed))


def nonce_duty(tolerance_s: int) -> Duty:
    """The duty of making the coming days' nonce partitions and dropping those that are no longer needed."""
    keep_days = days_to_keep(tolerance_s)

    async def keep_nonces(connection: AsyncConnection, at_ms: int) -> None:
        today = at_ms // DAY_MS
        await ensure_nonce_partitions(connection, today)
        # A clock that is ahead for a moment must not cost nonces that are still needed: two clocks agree.
        await drop_old_nonces(connection, min(today, await _database_day(connection)), keep_days)

    return keep_nonces


def range_duty(
    find_short: Callable[[AsyncConnection], Awaitable[Sequence[int]]],
    allocate: Callable[[AsyncConnection, int], Awaitable[object]],
) -> Duty:
    """The duty of giving a further id range to each merchant whose book runs short of ids.

    `find_short` names those merchants, `allocate` gives one of them a range.
    """

    async def keep_ranges(connection: AsyncConnection, at_ms: int) -> None:
        for merchant_id in await find_short(connection):
            await allocate(connection, merchant_id)
            log.info("further id range given", merchant_id=merchant_id)

    return keep_ranges


def days_to_keep(tolerance_s: int) -> int:
    """How many whole days a nonce is kept beyond its own: more than twice the tolerance, and at least one."""
    return 2 * tolerance_s // DAY_S + 1


async def list_nonce_days(connection: AsyncConnection) -> list[int]:
    """The UTC days, counted from the epoch, that have a partition. Other partitions are ignored."""
    cursor = await connection.execute(_TEXTS["list_nonce_partitions"])
    days = [_day_of(name) for (name,) in await cursor.fetchall()]
    return sorted(day for day in days if day is not None)


async def ensure_nonce_partitions(
    connection: AsyncConnection, today: int, ahead: int = DAYS_AHEAD
) -> list[int]:
    """Make the partitions of yesterday, today and `ahead` days; gives those that are new.

    Yesterday's too, since a batch may have begun before midnight. Must have been done before the first
    request of a day. Safe between processes.
    """
    wanted = range(today - 1, today + ahead + 1)
    if set(wanted) <= set(await list_nonce_days(connection)):
        return []
    days = {"first_day": wanted[0], "last_day": wanted[-1]}
    row = await (await connection.execute(_TEXTS["add_nonce_days"], days)).fetchone()
    assert row is not None
    return list(row[0])


async def open_nonce_days(url: str, day: int) -> None:
    """As `ensure_nonce_partitions`, on a connection of its own."""
    async with await db.connect(url) as connection:
        await ensure_nonce_partitions(connection, day)


async def drop_old_nonces(connection: AsyncConnection, today: int, keep_days: int) -> list[int]:
    """Drop the partitions of days before `today - keep_days`; gives the days dropped.

    A day that others are busy with at this moment is left for the next time. Raises ValueError when a nonce
    could be dropped before it is 24 hours old.
    """
    if keep_days < 1:
        raise ValueError("nonces are kept for at least one day beyond their own")
    dropped = []
    for day in await list_nonce_days(connection):
        if day < today - keep_days and await _drop_day(connection, day):
            dropped.append(day)
    return dropped


async def _database_day(connection: AsyncConnection) -> int:
    row = await (await connection.execute(_TEXTS["read_day"])).fetchone()
    assert row is not None
    return int(row[0])


async def _drop_day(connection: AsyncConnection, day: int) -> bool:
    try:
        async with connection.transaction():
            # Dropping waits for everyone at the table and makes everyone wait: better to give up soon than to
            # hold all requests behind, say, a long backup.
            timeout = sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(DROP_LOCK_TIMEOUT_MS))
            await connection.execute(timeout)
            await connection.execute(_TEXTS["drop_nonce_day"], {"day": day})
    except (errors.LockNotAvailable, errors.DeadlockDetected):
        log.info("nonces of a past day are in use, they are dropped later", day=day)
        return False
    return True


def _day_of(table: str) -> int | None:
    named = re.fullmatch(r"nonce_([0-9]+)", table)
    return None if named is None else int(named[1])
