"""What the sandbox's processes tell each other: counts of test values, marks, and attempts at callbacks.

Rules:
- Everything is in home, so web side and worker side may be several processes on several machines.
- Everything is bounded: an old count goes with the day, and only the latest attempts are kept.
- A mark is a count without a day, which the other side takes away.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.base.codes import LIMIT_EXCEEDED, refuse
from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.version import write_agent
from merchant_wallet.callbacks.payloads import Payload

QUERIES: Final = Queries(Path(__file__).with_name("sandbox.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

Connection = AsyncConnection[Any]

ACTIONS_A_DAY: Final = 10_000
"""Control actions, and test values that are counted, of one merchant on one UTC day."""
KEPT_ATTEMPTS: Final = 1_000
"""The attempts at callbacks that are kept of one merchant."""
PRUNE_EVERY: Final = 100
PAGE: Final = 200

_ACTIONS: Final = "actions"
_CALLBACKS: Final = "callbacks"


class Attempt(NamedTuple):
    """An attempt at a callback, as it was sent."""

    attempt_no: int
    event_id: str
    url: str
    headers: str
    body: str


async def run(connection: Connection, query: str, /, **values: object) -> list[tuple[Any, ...]]:
    """Run a query of `sandbox.sql`. Raises psycopg.Error."""
    cursor = await connection.execute(_TEXTS[query], values)
    return await cursor.fetchall() if cursor.description else []


async def count_action(connection: Connection, merchant_id: int, at_ms: int) -> None:
    """Count a control action of a merchant. Refused 42202 above the day's number."""
    day = at_ms // DAY_MS
    times = await _count_up(connection, merchant_id, _ACTIONS, day)
    if times == 1:
        await run(connection, "drop_old_counts", merchant_id=merchant_id, day=day)
    if times > ACTIONS_A_DAY:
        msg = f"a merchant has at most {ACTIONS_A_DAY} actions in the sandbox a day; go on tomorrow (UTC)"
        refuse(LIMIT_EXCEEDED, msg)


async def count_use(connection: Connection, merchant_id: int, name: str, at_ms: int) -> int:
    """Count a use of a test value, and return how often it was used. Refused 42202 as in `count_action`."""
    async with connection.transaction():
        await count_action(connection, merchant_id, at_ms)
        return await _count_up(connection, merchant_id, f"use {name}", at_ms // DAY_MS)


async def set_mark(connection: Connection, merchant_id: int, name: str) -> None:
    """Leave a mark for another process."""
    await _count_up(connection, merchant_id, f"mark {name}", 0)


async def has_mark(connection: Connection, merchant_id: int, names: Iterable[str]) -> bool:
    """Whether one of these marks is there."""
    marks = [f"mark {name}" for name in names]
    return bool(await run(connection, "find_mark", merchant_id=merchant_id, names=marks))


async def take_mark(connection: Connection, merchant_id: int, name: str) -> bool:
    """Take a mark away. False if there is none."""
    return bool(await run(connection, "take_mark", merchant_id=merchant_id, name=f"mark {name}"))


async def _count_up(connection: Connection, merchant_id: int, name: str, day: int) -> int:
    [(times,)] = await run(connection, "count_up", merchant_id=merchant_id, name=name, day=day)
    return int(times)


async def record_callback(
    connection: Connection, merchant_id: int, event_id: str, url: str, payload: Payload, at_ms: int
) -> None:
    """Keep an attempt at a callback for listeners, before it is sent."""
    values: Mapping[str, object] = {
        "merchant_id": merchant_id,
        "name": _CALLBACKS,
        "event_id": event_id,
        "url": url,
        "headers": _write_headers(payload),
        "body": payload.body.decode(),
        "at_ms": at_ms,
    }
    async with connection.transaction():
        [(number,)] = await run(connection, "record_callback", **values)
        if number % PRUNE_EVERY == 0:
            upto = number - KEPT_ATTEMPTS
            await run(connection, "drop_old_callbacks", merchant_id=merchant_id, upto=upto)


def _write_headers(payload: Payload) -> str:
    headers = {name.decode(): value.decode() for name, value in payload.headers}
    headers["User-Agent"] = write_agent()
    return msgspec.json.encode(headers).decode()


async def read_newest(connection: Connection, merchant_ids: Sequence[int]) -> dict[int, int]:
    """The number of the newest attempt of each merchant; 0 if there is none."""
    rows = await run(connection, "newest_attempts", merchant_ids=list(merchant_ids))
    return {merchant_id: number or 0 for merchant_id, number in rows}


async def find_event(connection: Connection, merchant_id: int, event_id: str) -> int | None:
    """The number of the latest attempt at an event."""
    [(number,)] = await run(connection, "find_event", merchant_id=merchant_id, event_id=event_id)
    return None if number is None else int(number)


async def page_attempts(connection: Connection, merchant_id: int, after: int, upto: int) -> list[Attempt]:
    """The next attempts after a number."""
    values = {"merchant_id": merchant_id, "after": after, "upto": upto, "limit": PAGE}
    return [Attempt(*row) for row in await run(connection, "page_attempts", **values)]
