"""Waits for what must happen, with one limit for all tests. It is generous, since a busy machine is no fault,
and costs nothing: each wait ends as soon as it can.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, TypeVar

from psycopg import AsyncConnection

TIMEOUT_S: Final = 120.0
"""How long a test waits at most for something that must happen."""
FIRST_PAUSE_S: Final = 0.005
LONGEST_PAUSE_S: Final = 0.1
BLOCKED_BY: Final = "select 1 from pg_stat_activity where %s = any(pg_blocking_pids(pid))"
"""A query: whether a session waits for a lock of the one with this process id."""

Result = TypeVar("Result")


def _list_pauses() -> Iterator[float]:
    """The pauses between two looks, which grow, until the time is over."""
    ends = time.monotonic() + TIMEOUT_S
    for number in itertools.count():
        if time.monotonic() > ends:
            return
        yield min(FIRST_PAUSE_S * 1.25**number, LONGEST_PAUSE_S)


def wait_until(ask: Callable[[], Result], what: str | Callable[[], str]) -> Result:
    """Ask until the answer is truthy, and return it. `what` is told otherwise, as it is then."""
    for pause_s in _list_pauses():
        if answer := ask():
            return answer
        time.sleep(pause_s)
    raise AssertionError(f"not within {TIMEOUT_S:.0f} s: {what if isinstance(what, str) else what()}")


async def eventually(ask: Callable[[], Awaitable[Result]]) -> Result:
    """Ask until the answer is truthy, and return it."""
    for pause_s in _list_pauses():
        if answer := await ask():
            return answer
        await asyncio.sleep(pause_s)
    raise AssertionError(f"not within {TIMEOUT_S:.0f} s")


async def wait_until_blocked(conn: AsyncConnection[Any], pid: int, change: "asyncio.Task[Any]") -> None:
    """Wait until the session with this process id waits for a lock of another one. `change` is what it runs:
    it must not end first.
    """

    async def is_blocked() -> bool:
        assert not change.done(), "the change did not wait"
        cursor = await conn.execute("select cardinality(pg_blocking_pids(%s))", [pid])
        row = await cursor.fetchone()
        return bool(row and row[0])

    await eventually(is_blocked)
