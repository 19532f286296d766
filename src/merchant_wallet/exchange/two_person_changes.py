"""Decides which new rates need two people, and proposes them.

Rules:
- One person may move a rate within the band in 24 hours. The new rate is compared with the rate in force now
  and with the rate in force a day ago. So many small steps do not add up to a large one.
- For a merchant without its own rate, the platform's rate is in force.
- A new rate needs two people if there is no rate to compare it with.
- If no rate was in force a day ago, the new rate is compared with the last one before that. So nobody can
  remove a rate to get around the band.
- One person may set the present rate again, so that it does not become too old.
- One person may pause a rate, or remove the platform's rate: both only refuse exchanges.
- Removing a merchant's own rate puts the platform's rate in force, so the platform's rate is compared. If
  the platform has no rate now, its last one is compared, because one person could set it again.
"""

from collections.abc import Mapping

from merchant_wallet.approvals.changes import Applied, ChangeRefused, Facts, Kind, ProposedChange
from merchant_wallet.audit.records import Author
from merchant_wallet.base.money import RATE_SCALE, format_rate, parse_rate
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.exchange import acts, rates
from merchant_wallet.exchange.acts import SET, describe, read_direction
from merchant_wallet.exchange.rates import PLATFORM, QUERIES, Connection, RateLine, RateRefused


def is_beyond(rate_e8: int, anchor_e8: int | None, band_e8: int) -> bool:
    """Whether a rate differs from the anchor by more than the band, a share of the anchor. Pure."""
    return anchor_e8 is None or abs(rate_e8 - anchor_e8) * RATE_SCALE > band_e8 * anchor_e8


async def needs_two(
    conn: Connection, direction: str, rate_e8: int | None, merchant_id: int, *, at_ms: int, band_e8: int
) -> bool:
    """Whether setting a rate (None: removing it) needs two people. The caller holds the lock on rates."""
    if rate_e8 == (await rates.find_line(conn, merchant_id, direction)).rate_e8:
        return False
    if rate_e8 is None:
        rate_e8 = await _read_rate_after_removal(conn, direction, merchant_id, at_ms)
        if rate_e8 is None:
            return False
    if is_beyond(rate_e8, await read_anchor(conn, direction, merchant_id, at_ms), band_e8):
        return True
    in_force_e8 = (await rates.read_effective(conn, merchant_id))[direction].rate_e8
    return in_force_e8 is not None and is_beyond(rate_e8, in_force_e8, band_e8)


async def read_anchor(conn: Connection, direction: str, merchant_id: int, at_ms: int) -> int | None:
    """The rate that was in force for a scope a day ago.

    If there was none, the last rate before that, else the first rate since.
    """
    values = {
        "merchant_id": merchant_id,
        "platform": PLATFORM,
        "direction": direction,
        "since_ms": at_ms - DAY_MS,
    }
    row = await (await conn.execute(QUERIES["read_anchor"].text, values)).fetchone()
    return None if row is None else int(row[0])


async def _read_rate_after_removal(
    conn: Connection, direction: str, merchant_id: int, at_ms: int
) -> int | None:
    """The rate in force after a removal: the platform's, or its last one, which one person may set again."""
    if merchant_id == PLATFORM:
        return None
    in_force_e8 = (await rates.read_effective(conn, PLATFORM))[direction].rate_e8
    return in_force_e8 or await read_anchor(conn, direction, PLATFORM, at_ms)


def describe_wanted(rate_e8: int, max_age_ms: int | None) -> dict[str, str | int | bool | None]:
    """A rate that is to be set, as facts. Pure."""
    return {"rate": format_rate(rate_e8), "paused": False, "maxAgeMs": max_age_ms}


async def describe_removal(conn: Connection, line: RateLine) -> tuple[Facts, Facts]:
    """The facts before and after the removal of a rate, for its proposal.

    Both contain the platform's rate, which comes into force. If that rate changes, the proposal fails.
    """
    before = {**describe(line), **await acts.describe_fallback(conn, line.direction, line.merchant_id)}
    return before, {**before, "rate": None, "maxAgeMs": None}


def make_kinds() -> Mapping[str, Kind]:
    """The kind of proposals about rates, the platform's and merchants' own."""
    return {SET: Kind(SET, _read, _apply)}


async def _read(conn: Connection, change: ProposedChange) -> Facts:
    await rates.lock_rates(conn)
    direction, scope = read_direction(change.subject), change.merchant_id or PLATFORM
    found = describe(await rates.find_line(conn, scope, direction))
    if acts.PLATFORM_RATE not in change.before:
        return found
    return {**found, **await acts.describe_fallback(conn, direction, scope)}


async def _apply(conn: Connection, change: ProposedChange, author: Author) -> Applied:
    direction, after, scope = read_direction(change.subject), change.after, change.merchant_id or PLATFORM
    try:
        if after["rate"] is None:
            await acts.remove_rate(conn, author, direction, scope)
        else:
            rate_e8 = parse_rate(after["rate"])
            await acts.set_rate(conn, author, direction, rate_e8, scope, after["maxAgeMs"])
    except RateRefused as refused:
        raise ChangeRefused(str(refused)) from None
    return Applied()
