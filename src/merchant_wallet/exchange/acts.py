"""What people do about rates: set, remove, pause and resume them.

Rules: a change and its entry in the audit log are one transaction, under the lock on rates. Which changes
need two people is in `two_person_changes`.
"""

from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import Final

from merchant_wallet.audit.records import Author, Facts
from merchant_wallet.base.money import format_rate
from merchant_wallet.exchange import rates
from merchant_wallet.exchange.rates import PLATFORM, Connection, RateLine

SET: Final = "rate.set"
REMOVE: Final = "rate.remove"
PAUSE: Final = "rate.pause"
RESUME: Final = "rate.resume"
PLATFORM_RATE: Final = "platformRate"
_SUBJECT: Final = "rate "


def format_subject(direction: str) -> str:
    """How proposals and the audit log name a rate."""
    return f"{_SUBJECT}{direction}"


def read_direction(subject: str) -> str:
    """The direction of a subject."""
    return subject.removeprefix(_SUBJECT)


def describe(line: RateLine) -> Facts:
    """A rate as facts. Pure."""
    rate = None if line.rate_e8 is None else format_rate(line.rate_e8)
    return {"rate": rate, "paused": line.paused, "maxAgeMs": line.max_age_ms}


async def describe_fallback(conn: Connection, direction: str, merchant_id: int) -> Facts:
    """The platform's rate, which comes into force once a merchant's own is removed. None for the platform."""
    if merchant_id == PLATFORM:
        return {}
    rate_e8 = (await rates.read_effective(conn, PLATFORM))[direction].rate_e8
    return {PLATFORM_RATE: None if rate_e8 is None else format_rate(rate_e8)}


async def set_rate(
    conn: Connection,
    author: Author,
    direction: str,
    rate_e8: int,
    merchant_id: int = PLATFORM,
    max_age_ms: int | None = None,
) -> RateLine:
    """Set a rate and end a pause of that line. Raises RateRefused."""

    async def act() -> RateLine:
        return await rates.set_rate(conn, direction, rate_e8, merchant_id, max_age_ms, at_ms=author.at_ms)

    return await _change(conn, author, SET, direction, merchant_id, act)


async def remove_rate(
    conn: Connection, author: Author, direction: str, merchant_id: int = PLATFORM
) -> RateLine:
    """Remove a rate. The rate that comes into force is recorded too. Raises RateRefused."""

    async def act() -> RateLine:
        return await rates.remove_rate(conn, direction, merchant_id, at_ms=author.at_ms)

    async with conn.transaction():
        await rates.lock_rates(conn)
        fallback = await describe_fallback(conn, direction, merchant_id)
        return await _change(conn, author, REMOVE, direction, merchant_id, act, fallback)


async def pause(
    conn: Connection, author: Author, direction: str, merchant_id: int = PLATFORM, *, paused: bool = True
) -> RateLine:
    """Pause or resume a direction. Raises RateRefused."""

    async def act() -> RateLine:
        return await rates.pause(conn, direction, merchant_id, paused, at_ms=author.at_ms)

    return await _change(conn, author, PAUSE if paused else RESUME, direction, merchant_id, act)


async def _change(
    conn: Connection,
    author: Author,
    action: str,
    direction: str,
    merchant_id: int,
    act: Callable[[], Awaitable[RateLine]],
    beside: Facts = MappingProxyType({}),
) -> RateLine:
    async with conn.transaction():
        await rates.lock_rates(conn)
        before = await rates.find_line(conn, merchant_id, direction)
        after = await act()
        await author.record(
            conn,
            action,
            format_subject(direction),
            merchant_id or None,
            before={**describe(before), **beside},
            after={**describe(after), **beside},
        )
    return after
