"""Failed attempts to sign in, and how long the next one must wait.

Rules: counted by name, whether anybody has it or not, and by source address (an IPv6 one by its /64, which is
one subscriber's); in the database, so that it holds for all who serve. An attempt is counted as failed before
it is looked at, so that many at once don't get more tries than one after the other. A few are free, then the
wait doubles from one second up to a quarter of an hour; a day without a failure, an hour for an address,
forgets them.
"""

import hashlib
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, NamedTuple

from merchant_wallet.operators.records import QUERIES, Connection

HOUR_MS: Final = 3_600_000
LONGEST_WAIT_MS: Final = 900_000


class Measure(NamedTuple):
    """How many attempts are free, and after how long without one all are forgotten."""

    free: int
    memory_ms: int


BY_NAME: Final = Measure(5, 24 * HOUR_MS)
BY_SOURCE: Final = Measure(20, HOUR_MS)


class Attempt(NamedTuple):
    """One attempt: the keys of its name and of its source."""

    name_key: bytes
    source_key: bytes


def name_attempt(name: str, source: str) -> Attempt:
    """What an attempt is counted under. Pure."""
    return Attempt(_key("name", name.lower()), _key("source", _subscriber(source)))


async def count(conn: Connection, attempt: Attempt, at_ms: int) -> int:
    """Count an attempt; gives 0 when it may be looked at, else in how many milliseconds to come again.

    Only one that may be looked at lengthens the wait. Not to be called in a transaction that may be undone.
    """
    wait_ms = await _count(conn, attempt.source_key, BY_SOURCE, at_ms)
    if wait_ms:
        return wait_ms
    wait_ms = await _count(conn, attempt.name_key, BY_NAME, at_ms)
    if wait_ms:
        # It was not looked at, so nothing was tried from this address.
        await _forgive(conn, attempt.source_key)
    return wait_ms


async def forgive(conn: Connection, attempt: Attempt) -> None:
    """What was tried was right."""
    await _forgive(conn, attempt.name_key)
    await _forgive(conn, attempt.source_key)


async def forget(conn: Connection, attempt: Attempt) -> None:
    """Both factors were right: the name's failures are forgotten; the address's others are not."""
    await conn.execute(QUERIES["forget_failures"].text, {"key": attempt.name_key})
    await _forgive(conn, attempt.source_key)


async def drop_forgotten(conn: Connection, at_ms: int) -> None:
    """Drop up to a hundred counts that say nothing any more."""
    await conn.execute(QUERIES["drop_failures"].text, {"forgotten_ms": at_ms - BY_NAME.memory_ms})


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


async def _forgive(conn: Connection, key: bytes) -> None:
    await conn.execute(QUERIES["forgive_attempt"].text, {"key": key})


def _key(kind: str, subject: str) -> bytes:
    return hashlib.sha256(f"{kind};{subject}".encode("utf-8", "surrogatepass")).digest()


def _subscriber(source: str) -> str:
    try:
        address = ip_address(source)
    except ValueError:
        # A name that a proxy gave, or none at all: then that is what is counted.
        return source
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ip_network((int(address), 64), strict=False))
    return str(address)
