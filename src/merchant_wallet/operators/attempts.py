"""Failed attempts to sign in, and how long the next one must wait.

Rules: counted by source address (an IPv6 one by its /64, which is one subscriber's), by name and address
together, and by name alone, whether anybody has it or not; in the database, so that it holds for all who
serve. An attempt is counted as failed before it is looked at, so that many at once don't get more tries than
one after the other. A few are free, then the wait doubles from one second up to a quarter of an hour; a day
without a failure, an hour for an address, forgets them.

By name alone many more are free, and at a known source, where the operator has signed in before, nothing is
counted so: somebody who fails under a name makes himself wait, not its owner; who fails from many addresses
makes only those wait who come from a new one.
"""

import hashlib
from typing import Final, NamedTuple

from merchant_wallet.base.rate_limits import subscriber_of
from merchant_wallet.operators.records import QUERIES, Connection

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
LONGEST_WAIT_MS: Final = 900_000
KNOWN_MS: Final = 90 * DAY_MS
"""For so long after its last sign-in an address is known."""
_HALF: Final = 16


class Measure(NamedTuple):
    """How many attempts are free, and after how long without one all are forgotten."""

    free: int
    memory_ms: int


BY_NAME_THERE: Final = Measure(5, DAY_MS)
BY_NAME: Final = Measure(30, DAY_MS)
BY_SOURCE: Final = Measure(20, HOUR_MS)


class Attempt(NamedTuple):
    """One attempt: the keys of its address, of its name at that address, and of its name anywhere."""

    source_key: bytes
    there_key: bytes
    name_key: bytes


def name_attempt(name: str, source: str) -> Attempt:
    """What an attempt is counted under. Pure.

    All keys of a name begin alike, so that they are found by it.
    """
    who, where = _hash("name", name.lower()), _hash("source", subscriber_of(source))
    return Attempt(where, who[:_HALF] + where[:_HALF], who[:_HALF] + bytes(_HALF))


async def count(conn: Connection, attempt: Attempt, at_ms: int) -> int:
    """Count an attempt; gives 0 when it may be looked at, else in how many milliseconds to come again.

    Only one that may be looked at lengthens the wait. Not to be called in a transaction that may be undone.
    """
    counted: list[bytes] = []
    for key, measure in await _list_measures(conn, attempt, at_ms):
        wait_ms = await _count(conn, key, measure, at_ms)
        if wait_ms:
            # It was not looked at, so nothing was tried.
            await _forgive(conn, counted)
            return wait_ms
        counted.append(key)
    return 0


async def forgive(conn: Connection, attempt: Attempt, at_ms: int) -> None:
    """What was tried was right."""
    await _forgive(conn, [key for key, _ in await _list_measures(conn, attempt, at_ms)])


async def forget(conn: Connection, attempt: Attempt, operator_id: int, at_ms: int) -> None:
    """Both factors were right: the name's failures at this address are forgotten, and the address is known.

    Others' failures are not: those from the address under other names, those under the name from elsewhere.
    """
    await forgive(conn, attempt, at_ms)
    await conn.execute(QUERIES["forget_failures"].text, {"key": attempt.there_key})
    values = {"key": attempt.there_key, "operator_id": operator_id, "at_ms": at_ms}
    await conn.execute(QUERIES["remember_source"].text, values)
    values = {"operator_id": operator_id, "forgotten_ms": at_ms - KNOWN_MS}
    await conn.execute(QUERIES["drop_sources"].text, values)


async def drop_forgotten(conn: Connection, at_ms: int) -> None:
    """Drop up to a hundred counts that say nothing any more."""
    await conn.execute(QUERIES["drop_failures"].text, {"forgotten_ms": at_ms - BY_NAME.memory_ms})


async def _list_measures(conn: Connection, attempt: Attempt, at_ms: int) -> list[tuple[bytes, Measure]]:
    values = {"key": attempt.there_key, "forgotten_ms": at_ms - KNOWN_MS}
    is_known = await (await conn.execute(QUERIES["find_source"].text, values)).fetchone() is not None
    measures = [(attempt.source_key, BY_SOURCE), (attempt.there_key, BY_NAME_THERE)]
    return measures if is_known else [*measures, (attempt.name_key, BY_NAME)]


async def _count(conn: Connection, key: bytes, measure: Measure, at_ms: int) -> int:
    values = {
        "key": key,
        "at_ms": at_ms,
        "forgotten_ms": at_ms - measure.memory_ms,
        "free": measure.free,
        "longest_ms": LONGEST_WAIT_MS,
    }
    if await (await conn.execute(QUERIES["count_attempt"].text, values)).fetchone() is not None:
        return 0
    row = await (await conn.execute(QUERIES["read_wait"].text, {"key": key})).fetchone()
    # Without a row the wait was ended between the two; whoever asks again soon is let in.
    return 1 if row is None else max(1, row[0] - at_ms)


async def _forgive(conn: Connection, keys: list[bytes]) -> None:
    for key in keys:
        await conn.execute(QUERIES["forgive_attempt"].text, {"key": key})


def _hash(kind: str, subject: str) -> bytes:
    return hashlib.sha256(f"{kind};{subject}".encode("utf-8", "surrogatepass")).digest()
