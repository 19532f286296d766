"""The order in which people are told, and after how long the next one is.

Rules:
- For a kind with a time, the first person in the order is told at once, and the next one each time that has
  passed without anybody acting. People who may not act on an item are left out of its order.
- For a kind without a time, and for people who are not in the order, everybody is told at once.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from psycopg import AsyncConnection

from merchant_wallet.notifications.contacts import QUERIES

Connection = AsyncConnection[Any]
MIN_AFTER_S: Final = 60
MAX_AFTER_S: Final = 604_800


class Step(NamedTuple):
    """One person's place in the order."""

    step_no: int
    operator_id: int
    name: str


async def list_steps(conn: Connection) -> list[Step]:
    """The people in the order."""
    return [Step(*row) for row in await (await conn.execute(QUERIES["list_steps"].text)).fetchall()]


async def list_times(conn: Connection) -> dict[str, int]:
    """After how many seconds the next person is told, by kind."""
    return dict(await (await conn.execute(QUERIES["list_times"].text)).fetchall())


async def write(conn: Connection, operator_ids: Sequence[int], times: Mapping[str, int]) -> None:
    """Store order and times. Call it in a transaction."""
    await conn.execute(QUERIES["lock_escalation"].text)
    await conn.execute(QUERIES["delete_steps"].text)
    await conn.execute(QUERIES["delete_times"].text)
    await conn.execute(QUERIES["insert_steps"].text, {"operator_ids": list(operator_ids)})
    values = {"kinds": list(times), "after_s": list(times.values())}
    await conn.execute(QUERIES["insert_times"].text, values)
