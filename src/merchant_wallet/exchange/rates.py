"""The operator's exchange rates: set, pause and list them, and find the rate in force for a merchant.

Rules:
- A rate is units received per unit sent, in 10**-8.
- Scope 0 is the platform. A merchant's own rate overrides the platform's, for each direction by itself.
- The two directions in force must not multiply to more than one: a loop of exchanges would make money. Every
  change is checked for every scope it affects, paused scopes too. A lock allows one change at a time.
- A direction is paused if the line of its rate is paused, or if the merchant's own line is.
- Every change adds a row to the history, in the same transaction.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import class_row

from merchant_wallet.base.db import Queries
from merchant_wallet.base.money import MAX_RATE_E8, RATE_SCALE, format_rate
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.book.rules.exchange import is_too_old

Connection = AsyncConnection[Any]

USDT_TO_KFB: Final = "USDT:KFB"
KFB_TO_USDT: Final = "KFB:USDT"
DIRECTIONS: Final = (USDT_TO_KFB, KFB_TO_USDT)
PLATFORM: Final = 0
ONE: Final = RATE_SCALE**2
"""The largest allowed product of the two directions."""

QUERIES = Queries(Path(__file__).with_name("rates.sql"))
_PUT: Final = {USDT_TO_KFB: "put_usdt_kfb", KFB_TO_USDT: "put_kfb_usdt"}


class RateRefused(ValueError):
    """The rate can't be set. The text says why, and the largest rate that could be set, if there is one."""


class RateLine(msgspec.Struct, frozen=True):
    """One direction of one scope. `rate_e8` None: no rate is set here. `max_age_ms` None: any age is fine."""

    merchant_id: int
    direction: str
    rate_e8: int | None = None
    paused: bool = False
    set_ms: int | None = None
    max_age_ms: int | None = None

    def is_too_old(self, at_ms: int) -> bool:
        """Whether exchanges are refused because the rate is too old."""
        return is_too_old(self.set_ms, self.max_age_ms, at_ms)


class RateChange(msgspec.Struct, frozen=True):
    """One row of the history: what a direction of a scope is from `set_ms` on."""

    change_no: int
    merchant_id: int
    direction: str
    rate_e8: int | None
    paused: bool
    max_age_ms: int | None
    set_ms: int


class EffectiveRate(NamedTuple):
    """The rate in force for a merchant in one direction. `own`: it overrides the platform's."""

    direction: str
    rate_e8: int | None
    paused: bool
    set_ms: int | None
    max_age_ms: int | None
    own: bool

    def usable_at(self, at_ms: int) -> int | None:
        """The rate for an exchange at a moment, or None if the exchange would be refused."""
        is_refused = self.paused or is_too_old(self.set_ms, self.max_age_ms, at_ms)
        return None if is_refused else self.rate_e8


class Arbitrage(NamedTuple):
    """A scope whose two directions multiply to more than one."""

    merchant_id: int
    usdt_kfb_e8: int
    kfb_usdt_e8: int


Lines = Mapping[tuple[int, str], RateLine]


async def set_rate(
    conn: Connection,
    direction: str,
    rate_e8: int,
    merchant_id: int = PLATFORM,
    max_age_ms: int | None = None,
    *,
    at_ms: int,
) -> RateLine:
    """Set a rate and end a pause of that line. The next exchange uses it. Raises RateRefused."""
    if not 0 < rate_e8 <= MAX_RATE_E8:
        raise RateRefused(f"A rate is above 0 and at most {format_rate(MAX_RATE_E8)}.")
    if max_age_ms is not None and max_age_ms <= 0:
        raise RateRefused("A rate's maximum age is above 0.")
    line = RateLine(merchant_id, _known(direction), rate_e8, False, at_ms, max_age_ms)
    async with conn.transaction():
        lines = await _lock_and_read(conn, merchant_id)
        _refuse_arbitrage(lines, line)
        await _write(conn, line, at_ms)
    return line


async def remove_rate(
    conn: Connection, direction: str, merchant_id: int = PLATFORM, *, at_ms: int
) -> RateLine:
    """Remove a rate. A merchant then has the platform's rate, the platform has none. A pause stays.

    Raises RateRefused.
    """
    async with conn.transaction():
        lines = await _lock_and_read(conn, merchant_id)
        paused = _line(lines, merchant_id, _known(direction)).paused
        line = RateLine(merchant_id, direction, paused=paused)
        _refuse_arbitrage(lines, line)
        await _write(conn, line, at_ms)
    return line


async def pause(
    conn: Connection, direction: str, merchant_id: int = PLATFORM, paused: bool = True, *, at_ms: int
) -> RateLine:
    """Pause or resume a direction. The rate and its age stay. Raises RateRefused for an unknown scope.

    A merchant without its own rate can be paused too. A pause of the platform's rate does not pause
    merchants' own rates.
    """
    async with conn.transaction():
        lines = await _lock_and_read(conn, merchant_id)
        line = msgspec.structs.replace(_line(lines, merchant_id, _known(direction)), paused=paused)
        await _write(conn, line, at_ms)
    return line


async def lock_rates(conn: Connection) -> None:
    """Block other changes of rates until the caller's transaction ends."""
    await conn.execute(QUERIES["lock_rates"].text)


async def list_rates(conn: Connection) -> list[RateLine]:
    """Every line that has a rate or a pause, the platform's first."""
    return [line for line in await _read(conn, None) if line.rate_e8 is not None or line.paused]


async def find_line(conn: Connection, merchant_id: int, direction: str) -> RateLine:
    """The line of a merchant or of the platform in a direction; an empty line if nothing is set."""
    return _line(_index(await _read(conn, [merchant_id])), merchant_id, direction)


async def list_history(
    conn: Connection, *, merchant_id: int | None = None, before_no: int | None = None, limit: int
) -> list[RateChange]:
    """Changes with a number below `before_no`, newest first, of one scope or (None) of all scopes."""
    before = MAX_BIGINT if before_no is None else before_no
    values = {"merchant_id": merchant_id, "before_no": before, "limit": limit}
    cursor = await conn.execute(QUERIES["list_history"].text, values)
    return [RateChange(*row) for row in await cursor.fetchall()]


async def read_effective(conn: Connection, merchant_id: int) -> dict[str, EffectiveRate]:
    """The rates in force for a merchant, by direction. PLATFORM: for a merchant without own rates."""
    lines = _index(await _read(conn, [PLATFORM, merchant_id]))
    return {direction: find_effective_rate(lines, merchant_id, direction) for direction in DIRECTIONS}


def find_effective_rate(lines: Lines, merchant_id: int, direction: str) -> EffectiveRate:
    """Combine a merchant's line and the platform's into the rate in force. No other code does this."""
    own = _line(lines, merchant_id, direction)
    is_own = own.rate_e8 is not None and merchant_id != PLATFORM
    line = own if is_own else _line(lines, PLATFORM, direction)
    return EffectiveRate(
        direction, line.rate_e8, line.paused or own.paused, line.set_ms, line.max_age_ms, is_own
    )


def find_arbitrage(lines: Lines, scopes: Iterable[int]) -> Arbitrage | None:
    """The first scope whose two rates in force multiply to more than one, or None."""
    for scope in scopes:
        there = find_effective_rate(lines, scope, USDT_TO_KFB).rate_e8
        back = find_effective_rate(lines, scope, KFB_TO_USDT).rate_e8
        if there is not None and back is not None and there * back > ONE:
            return Arbitrage(scope, there, back)
    return None


def _refuse_arbitrage(lines: Lines, changed: RateLine) -> None:
    after = {**lines, (changed.merchant_id, changed.direction): changed}
    reached = {changed.merchant_id}
    if changed.merchant_id == PLATFORM:
        reached.update(scope for scope, _ in after)
    arbitrage = find_arbitrage(after, sorted(reached))
    if arbitrage is None:
        return
    whose = f"merchant {arbitrage.merchant_id}" if arbitrage.merchant_id else "the platform"
    opposite = arbitrage.kfb_usdt_e8 if changed.direction == USDT_TO_KFB else arbitrage.usdt_kfb_e8
    raise RateRefused(
        f"For {whose}, USDT:KFB {format_rate(arbitrage.usdt_kfb_e8)} and "
        f"KFB:USDT {format_rate(arbitrage.kfb_usdt_e8)} would multiply to more than 1, "
        f"so that a loop of exchanges makes money. "
        f"There, {changed.direction} can be at most {format_rate(ONE // opposite)}."
    )


def _known(direction: str) -> str:
    if direction not in DIRECTIONS:
        raise RateRefused(f"{direction!r} is no direction; there are {USDT_TO_KFB} and {KFB_TO_USDT}.")
    return direction


def _line(lines: Lines, merchant_id: int, direction: str) -> RateLine:
    return lines.get((merchant_id, direction)) or RateLine(merchant_id, direction)


def _index(lines: Iterable[RateLine]) -> dict[tuple[int, str], RateLine]:
    return {(line.merchant_id, line.direction): line for line in lines}


async def _lock_and_read(conn: Connection, merchant_id: int) -> dict[tuple[int, str], RateLine]:
    await lock_rates(conn)
    if merchant_id != PLATFORM:
        found = await conn.execute(QUERIES["find_merchant"].text, {"merchant_id": merchant_id})
        if await found.fetchone() is None:
            raise RateRefused(f"There is no merchant {merchant_id}.")
    return _index(await _read(conn, None if merchant_id == PLATFORM else [PLATFORM, merchant_id]))


async def _read(conn: Connection, scopes: list[int] | None) -> list[RateLine]:
    async with conn.cursor(row_factory=class_row(RateLine)) as cursor:
        await cursor.execute(QUERIES["read_rates"].text, {"scopes": scopes})
        return await cursor.fetchall()


async def _write(conn: Connection, line: RateLine, at_ms: int) -> None:
    values = {**msgspec.structs.asdict(line), "at_ms": at_ms}
    await conn.execute(QUERIES[_PUT[line.direction]].text, values)
    await conn.execute(QUERIES["insert_history"].text, values)
