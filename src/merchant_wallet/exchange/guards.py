"""Which new rates need two people, and the proposal of one.

Rules:
- One person may move a rate within the band in 24 hours. Small steps do not add up to a large one: the new
  rate is compared with the rate that stood a day ago.
- A merchant's first own rate is compared with the platform's. A rate that compares with nothing needs two.
- A rate that was removed is compared with what it was: removing it opens no way around the band.
- Pausing and removing are one person's act: they refuse exchanges. Removing a merchant's own rate puts the
  platform's in force, so that is compared too.
"""

from collections.abc import Mapping
from typing import Final

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Facts, Kind, ProposedChange
from merchant_wallet.exchange import rates
from merchant_wallet.exchange.rates import PLATFORM, QUERIES, Connection, RateLine, RateRefused
from merchant_wallet.money import RATE_SCALE, format_rate, parse_rate

SET: Final = "rate.set"
DAY_MS: Final = 86_400_000
_SUBJECT: Final = "rate "


def is_beyond(rate_e8: int, anchor_e8: int | None, band_e8: int) -> bool:
    """Whether a rate is further from another than the band, as a share of that one. Pure."""
    return anchor_e8 is None or abs(rate_e8 - anchor_e8) * RATE_SCALE > band_e8 * anchor_e8


async def needs_two(
    conn: Connection, direction: str, rate_e8: int | None, merchant_id: int, *, at_ms: int, band_e8: int
) -> bool:
    """Whether setting a rate (None: removing it) needs two people."""
    if rate_e8 is None:
        if merchant_id == PLATFORM:
            return False
        rate_e8 = (await rates.read_effective(conn, PLATFORM))[direction].rate_e8
        if rate_e8 is None:
            return False
    return is_beyond(rate_e8, await read_anchor(conn, direction, merchant_id, at_ms), band_e8)


async def read_anchor(conn: Connection, direction: str, merchant_id: int, at_ms: int) -> int | None:
    """The rate that stood a day ago, or else the first one since; where there was none, the platform's."""
    for scope in dict.fromkeys((merchant_id, PLATFORM)):
        values = {"merchant_id": scope, "direction": direction, "since_ms": at_ms - DAY_MS}
        row = await (await conn.execute(QUERIES["read_anchor"].text, values)).fetchone()
        if row is not None:
            return int(row[0])
    return None


def name_subject(direction: str) -> str:
    """How proposals and the audit log name a rate."""
    return f"{_SUBJECT}{direction}"


def describe(line: RateLine) -> dict[str, str | int | bool | None]:
    """A rate as facts. Pure."""
    rate = None if line.rate_e8 is None else format_rate(line.rate_e8)
    return {"rate": rate, "paused": line.paused, "maxAgeMs": line.max_age_ms}


def describe_wanted(rate_e8: int, max_age_ms: int | None) -> dict[str, str | int | bool | None]:
    """What a rate is once it is set. Pure."""
    return {"rate": format_rate(rate_e8), "paused": False, "maxAgeMs": max_age_ms}


def make_kinds() -> Mapping[str, Kind]:
    """The kind of proposals about rates, the platform's and merchants' own."""
    return {SET: Kind(SET, _read, _apply)}


async def find_line(conn: Connection, direction: str, merchant_id: int) -> RateLine:
    """What is set for a scope in a direction; an empty line where nothing is."""
    lines = await rates.list_rates(conn)
    found = (one for one in lines if (one.merchant_id, one.direction) == (merchant_id, direction))
    return next(found, RateLine(merchant_id, direction))


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    await rates.lock_rates(conn)
    return describe(await find_line(conn, _direction_of(change), change.merchant_id or PLATFORM))


async def _apply(conn: Connection, change: ProposedChange, at_ms: int) -> Applied:
    direction, after, scope = _direction_of(change), change.after, change.merchant_id or PLATFORM
    try:
        if after["rate"] is None:
            await rates.remove_rate(conn, direction, scope, at_ms=at_ms)
        else:
            rate_e8 = parse_rate(after["rate"])
            await rates.set_rate(conn, direction, rate_e8, scope, after["maxAgeMs"], at_ms=at_ms)
    except RateRefused as refused:
        raise ChangeRefused(str(refused)) from None
    return Applied()


def _direction_of(change: ProposedChange) -> str:
    return change.subject.removeprefix(_SUBJECT)
