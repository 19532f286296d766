"""Lists a merchant's signed requests and how many there were, and deletes old ones.

Rules: requests are listed for a day, numbers for a week. Times are milliseconds.
"""

from typing import Any, Final

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import class_row

from merchant_wallet.api.request_log.recorder import KEPT, QUERIES
from merchant_wallet.base.codes import SUCCESS
from merchant_wallet.base.units import DAY_MS, MAX_BIGINT

USAGE_MS: Final = 7 * DAY_MS
DELETED_AT_ONCE: Final = 10_000


class LoggedRequest(msgspec.Struct, frozen=True):
    """A signed request, its answer's code, and its fields in the order they were sent.

    `left_out` names the fields that are not stored completely.
    """

    log_no: int
    key_no: int
    at_ms: int
    request_id: str
    operation: str
    code: int
    source: str
    took_ms: int
    fields: dict[str, str | None]
    left_out: list[str]


class RequestFilter(msgspec.Struct, frozen=True):
    """What to search for. None does not filter."""

    request_id: str | None = None
    operation: str | None = None
    code: int | None = None


class UsageRow(msgspec.Struct, frozen=True):
    """How many requests of an operation got a code within an hour."""

    hour_ms: int
    operation: str
    code: int
    requests: int


class KeyUsage(msgspec.Struct, frozen=True):
    """How many requests were made with a key, and how many of them were refused."""

    key_no: int
    requests: int
    refused: int


async def list_requests(
    conn: AsyncConnection[Any],
    merchant_id: int,
    wanted: RequestFilter,
    *,
    at_ms: int,
    before_no: int | None = None,
    limit: int = 25,
) -> list[LoggedRequest]:
    """A merchant's signed requests of the last day, newest first. Raises ValueError for a wrong limit."""
    if not 1 <= limit <= KEPT:
        raise ValueError(f"A page has 1 to {KEPT} requests.")
    values = {
        **msgspec.structs.asdict(wanted),
        "merchant_id": merchant_id,
        "before_no": MAX_BIGINT if before_no is None else before_no,
        "since_ms": at_ms - DAY_MS,
        "page": limit,
    }
    async with conn.cursor(row_factory=class_row(LoggedRequest)) as cursor:
        await cursor.execute(QUERIES["list_requests"].text, values)
        return await cursor.fetchall()


async def list_usage(conn: AsyncConnection[Any], merchant_id: int, since_ms: int) -> list[UsageRow]:
    """A merchant's numbers by hour, operation and code, the newest hour first."""
    async with conn.cursor(row_factory=class_row(UsageRow)) as cursor:
        await cursor.execute(QUERIES["list_usage"].text, {"merchant_id": merchant_id, "since_ms": since_ms})
        return await cursor.fetchall()


async def add_up_by_key(conn: AsyncConnection[Any], merchant_id: int, since_ms: int) -> list[KeyUsage]:
    """A merchant's numbers of each key that was used, the first key first."""
    values = {"merchant_id": merchant_id, "since_ms": since_ms, "success": SUCCESS}
    async with conn.cursor(row_factory=class_row(KeyUsage)) as cursor:
        await cursor.execute(QUERIES["add_up_by_key"].text, values)
        return await cursor.fetchall()


async def find_busiest_minute(
    conn: AsyncConnection[Any], merchant_id: int, since_ms: int
) -> tuple[int, int] | None:
    """The minute since a time in which a merchant made most requests, and how many."""
    values = {"merchant_id": merchant_id, "since_ms": since_ms}
    row = await (await conn.execute(QUERIES["find_busiest_minute"].text, values)).fetchone()
    return None if row is None else (row[0], row[1])


async def delete_old(conn: AsyncConnection[Any], at_ms: int) -> None:
    """Delete what is not listed any more. Raises psycopg.Error."""
    values = {"before_ms": at_ms - DAY_MS, "limit": DELETED_AT_ONCE}
    await conn.execute(QUERIES["delete_old_requests"].text, values)
    await conn.execute(QUERIES["delete_old_minutes"].text, values)
    await conn.execute(QUERIES["delete_old_usage"].text, {"before_ms": at_ms - USAGE_MS})
