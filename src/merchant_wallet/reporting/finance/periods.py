"""Days and months, in UTC. Pure."""

from datetime import UTC, date, datetime, timedelta
from typing import Final

import msgspec

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.user_input import EPOCH, parse_day

MAX_DAYS: Final = 400


class Period(msgspec.Struct, frozen=True):
    """A day, a month or several days, from `since_day` on and before `until_day`, counted from 1970."""

    name: str
    since_day: int
    until_day: int

    @property
    def since_ms(self) -> int:
        """The first moment."""
        return self.since_day * DAY_MS

    @property
    def until_ms(self) -> int:
        """The first moment after it."""
        return self.until_day * DAY_MS

    @property
    def is_month(self) -> bool:
        """Whether it is a whole month."""
        return len(self.name) == len("2026-10")

    @property
    def last_day(self) -> str:
        """Its last day, as 2026-10-31."""
        return format_day(self.until_day - 1)

    @property
    def first_day(self) -> str:
        """Its first day, as 2026-10-01."""
        return format_day(self.since_day)


def day_of(at_ms: int) -> int:
    """The day of a moment."""
    return at_ms // DAY_MS


def format_day(day: int) -> str:
    """A day as 2026-10-05."""
    return (EPOCH + timedelta(days=day)).isoformat()


def month_of(at_ms: int) -> Period:
    """The month of a moment."""
    at = datetime.fromtimestamp(at_ms // 1000, UTC)
    return make_month(at.year, at.month)


def make_month(year: int, month: int) -> Period:
    """One month."""
    first = date(year, month, 1)
    later = date(year + month // 12, month % 12 + 1, 1)
    return Period(f"{year:04d}-{month:02d}", (first - EPOCH).days, (later - EPOCH).days)


def previous_month(period: Period) -> Period:
    """The month before."""
    return month_of(period.since_ms - 1)


def next_month(period: Period) -> Period:
    """The month after."""
    return month_of(period.until_ms)


def last_days(at_ms: int, days: int = 31) -> Period:
    """The days up to a moment, its own included."""
    last = day_of(at_ms)
    return Period(f"{format_day(last - days + 1)}..{format_day(last)}", last - days + 1, last + 1)


def cut_future(period: Period, at_ms: int) -> Period:
    """The days of a period that have begun. Raises ValueError if none has."""
    until_day = min(period.until_day, day_of(at_ms) + 1)
    if until_day <= period.since_day:
        raise ValueError(f"{period.name} has not begun")
    return Period(period.name, period.since_day, until_day)


def parse_period(text: str) -> Period:
    """A month (2026-10), a day (2026-10-05) or two days with two dots between them. Raises ValueError."""
    first, dots, last = text.partition("..")
    if not dots:
        return parse_month(text) if len(text) == len("2026-10") else _make_days(text, text, text)
    return _make_days(text, first, last)


def parse_month(text: str) -> Period:
    """A month as 2026-10. Raises ValueError."""
    try:
        found = datetime.strptime(text, "%Y-%m")
    except ValueError:
        raise ValueError(f"{text[:20]!r} is no month; give one as 2026-10") from None
    month = make_month(found.year, found.month)
    if month.name != text or month.since_day < 0:
        raise ValueError(f"{text[:20]!r} is no month; give one as 2026-10")
    return month


def _make_days(name: str, first: str, last: str) -> Period:
    try:
        since, until = parse_day(first), parse_day(last)
    except ValueError:
        raise ValueError(
            f"{name[:30]!r} is no period; give 2026-10, 2026-10-05 or 2026-10-05..2026-10-12"
        ) from None
    period = Period(name, (since - EPOCH).days, (until - EPOCH).days + 1)
    if period.since_day < 0 or not 0 < period.until_day - period.since_day <= MAX_DAYS:
        raise ValueError(f"a period has 1 to {MAX_DAYS} days")
    return period
