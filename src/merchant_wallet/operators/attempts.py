"""Failed sign-ins, and how long the next attempt must wait.

Rules:
- Failures are counted by source address (an IPv6 address by its /64, which is one subscriber), by name and
  address together, and by name alone. Names that do not exist are counted too. The counts are in the
  database, so they hold for all web processes.
- An attempt is counted as failed before it is judged, so parallel attempts get no more tries than sequential
  ones.
- A few failures are free. Then the wait doubles from one second up to 15 minutes. A count is dropped after a
  day without a failure, the count of an address after an hour.
- By name alone many more failures are free. At a known source, where the operator has signed in before,
  nothing is counted by name alone. So an attacker who fails under someone's name slows down himself, not the
  owner. An attack from many addresses slows down only people at new addresses.
"""

import hashlib
from typing import Final, NamedTuple

from merchant_wallet.base.rate_limits import subscriber_of
from merchant_wallet.base.units import DAY_MS, HOUR_MS
from merchant_wallet.operators.records import QUERIES, Connection

MAX_WAIT_MS: Final = 900_000
KNOWN_MS: Final = 90 * DAY_MS
"""An address stays known for this long after its last sign-in."""
_PREFIX_BYTES: Final = 16


class FailureLimit(NamedTuple):
    """How many failures are free, and after how long without one the count is dropped."""

    free: int
    memory_ms: int


BY_NAME_THERE: Final = FailureLimit(5, DAY_MS)
BY_NAME: Final = FailureLimit(30, DAY_MS)
BY_SOURCE: Final = FailureLimit(20, HOUR_MS)


class Attempt(NamedTuple):
    """The three keys of an attempt: its address, its name at that address, and its name anywhere."""

    source_key: bytes
    there_key: bytes
    name_key: bytes


def make_attempt(name: str, source: str) -> Attempt:
    """The keys under which an attempt is counted. Pure.

    All keys of a name have the same prefix, so they can be found by the name.
    """
    who, where = _hash("name", name.lower()), _hash("source", subscriber_of(source))
    return Attempt(
        where, who[:_PREFIX_BYTES] + where[:_PREFIX_BYTES], who[:_PREFIX_BYTES] + bytes(_PREFIX_BYTES)
    )


async def count(conn: Connection, attempt: Attempt, at_ms: int) -> int:
    """Count an attempt. Returns 0 if it may be judged, otherwise the wait in milliseconds.

    Only an attempt that may be judged makes the next wait longer. Do not call this in a transaction that may
    be rolled back.
    """
    counted: list[bytes] = []
    for key, limit in await _list_limits(conn, attempt, at_ms):
        wait_ms = await _count(conn, key, limit, at_ms)
        if wait_ms:
            # It is not judged, so it must not count.
            await _uncount(conn, counted)
            return wait_ms
        counted.append(key)
    return 0


async def uncount(conn: Connection, attempt: Attempt, at_ms: int) -> None:
    """Take back the count of an attempt that was right."""
    await _uncount(conn, [key for key, _ in await _list_limits(conn, attempt, at_ms)])


async def reset_counts(conn: Connection, attempt: Attempt, operator_id: int, at_ms: int) -> None:
    """After both factors were right: drop the name's failures at this address and remember the address.

    Failures from this address under other names stay, and so do failures under this name from other
    addresses.
    """
    await uncount(conn, attempt, at_ms)
    await conn.execute(QUERIES["delete_failures"].text, {"key": attempt.there_key})
    values = {"key": attempt.there_key, "operator_id": operator_id, "at_ms": at_ms}
    await conn.execute(QUERIES["remember_source"].text, values)
    values = {"operator_id": operator_id, "forgotten_ms": at_ms - KNOWN_MS}
    await conn.execute(QUERIES["delete_old_sources"].text, values)


async def delete_expired(conn: Connection, at_ms: int) -> None:
    """Delete up to a hundred expired counts."""
    await conn.execute(QUERIES["delete_expired_failures"].text, {"forgotten_ms": at_ms - BY_NAME.memory_ms})


async def _list_limits(conn: Connection, attempt: Attempt, at_ms: int) -> list[tuple[bytes, FailureLimit]]:
    values = {"key": attempt.there_key, "forgotten_ms": at_ms - KNOWN_MS}
    is_known = await (await conn.execute(QUERIES["find_source"].text, values)).fetchone() is not None
    limits = [(attempt.source_key, BY_SOURCE), (attempt.there_key, BY_NAME_THERE)]
    return limits if is_known else [*limits, (attempt.name_key, BY_NAME)]


async def _count(conn: Connection, key: bytes, limit: FailureLimit, at_ms: int) -> int:
    values = {
        "key": key,
        "at_ms": at_ms,
        "forgotten_ms": at_ms - limit.memory_ms,
        "free": limit.free,
        "longest_ms": MAX_WAIT_MS,
    }
    if await (await conn.execute(QUERIES["count_attempt"].text, values)).fetchone() is not None:
        return 0
    row = await (await conn.execute(QUERIES["read_wait"].text, {"key": key})).fetchone()
    # Without a row the wait ended between the two queries. The client may retry at once.
    return 1 if row is None else max(1, row[0] - at_ms)


async def _uncount(conn: Connection, keys: list[bytes]) -> None:
    for key in keys:
        await conn.execute(QUERIES["uncount_attempt"].text, {"key": key})


def _hash(kind: str, subject: str) -> bytes:
    return hashlib.sha256(f"{kind};{subject}".encode("utf-8", "surrogatepass")).digest()
