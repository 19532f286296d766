"""Partitions of the nonce table: one for each UTC day. They are created ahead and dropped whole.

A day is kept for at least 24 hours, and for more than twice the tolerance of timestamps. After that, a
repeated request is refused for its timestamp. Each function may run at any time, twice, and in several
processes.
"""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import structlog
from psycopg import AsyncConnection, errors, sql

from merchant_wallet.base import db
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import DAY_MS

DAYS_AHEAD: Final = 1
DAY_S: Final = DAY_MS // 1000
DROP_LOCK_TIMEOUT_MS: Final = 200

QUERIES: Final = Queries(Path(__file__).with_name("nonce_partitions.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

log = structlog.get_logger(__name__)


def make_nonce_partition_task(tolerance_s: int) -> Callable[[AsyncConnection, int], Awaitable[None]]:
    """The maintenance task that creates the next days' nonce partitions and drops old ones."""
    keep_days = count_days_to_keep(tolerance_s)

    async def keep_nonces(connection: AsyncConnection, at_ms: int) -> None:
        today = at_ms // DAY_MS
        await ensure_nonce_partitions(connection, today)
        # Two clocks must agree: a clock that is ahead for a moment must not drop nonces that are still
        # needed.
        await drop_old_nonces(connection, min(today, await _database_day(connection)), keep_days)

    return keep_nonces


def count_days_to_keep(tolerance_s: int) -> int:
    """For how many days after its own a nonce is kept: more than twice the tolerance, at least one."""
    return 2 * tolerance_s // DAY_S + 1


async def list_nonce_days(connection: AsyncConnection) -> list[int]:
    """The UTC days, counted from the epoch, that have a partition. Other partitions are ignored."""
    cursor = await connection.execute(_TEXTS["list_nonce_partitions"])
    days = [_day_of(name) for (name,) in await cursor.fetchall()]
    return sorted(day for day in days if day is not None)


async def ensure_nonce_partitions(
    connection: AsyncConnection, today: int, ahead: int = DAYS_AHEAD
) -> list[int]:
    """Create the partitions of yesterday, today and `ahead` days. Returns the new ones.

    Yesterday's is needed for a batch that began before midnight. This must run before the first request of a
    day. It is safe to run in several processes.
    """
    wanted = range(today - 1, today + ahead + 1)
    if set(wanted) <= set(await list_nonce_days(connection)):
        return []
    days = {"first_day": wanted[0], "last_day": wanted[-1]}
    row = await (await connection.execute(_TEXTS["add_nonce_days"], days)).fetchone()
    assert row is not None
    return list(row[0])


async def open_nonce_days(url: str, day: int) -> None:
    """Run `ensure_nonce_partitions` on a connection of its own."""
    async with await db.connect(url) as connection:
        await ensure_nonce_partitions(connection, day)


async def drop_old_nonces(connection: AsyncConnection, today: int, keep_days: int) -> list[int]:
    """Drop the partitions of days before `today - keep_days`. Returns the dropped days.

    A day that is in use is left for the next time. Raises ValueError if a nonce could be dropped before it is
    24 hours old.
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
            # DROP waits for everyone who uses the table, and everyone else waits for DROP. So it stops
            # waiting soon. Otherwise a long backup could block all requests.
            timeout = sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(DROP_LOCK_TIMEOUT_MS))
            await connection.execute(timeout)
            await connection.execute(_TEXTS["drop_nonce_day"], {"day": day})
    except (errors.LockNotAvailable, errors.DeadlockDetected):
        log.info("a past day's nonce partition is in use, it is dropped later", day=day)
        return False
    except errors.InternalError_:
        # PostgreSQL looks up the partition, then its parent. Between the two another process dropped it.
        if day in await list_nonce_days(connection):
            raise
        return False
    return True


def _day_of(table: str) -> int | None:
    named = re.fullmatch(r"nonce_([0-9]+)", table)
    return None if named is None else int(named[1])
