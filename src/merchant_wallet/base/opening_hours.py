"""Working hours as one line: days, times and a time zone, such as `Mon-Fri 09:00-18:00 Asia/Shanghai`. Pure.

Rules:
- Days are `Mon` to `Sun`, one, several with commas, or a span. A span may pass the week's end: `Sat-Mon`.
- An end before the beginning is on the next day: `Fri 22:00-06:00` ends on Saturday. `24:00` is midnight.
- The zone is a name of the IANA time zone database. Summer time is followed as that zone does.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from merchant_wallet.base.user_input import InvalidInput

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MAX_LENGTH: Final = 100
_DAY_MINUTES: Final = 24 * 60
_match_times = re.compile(r"([0-9]{2}):([0-9]{2})-([0-9]{2}):([0-9]{2})").fullmatch
_match_zone = re.compile(r"[A-Za-z0-9_+-]{1,40}(?:/[A-Za-z0-9_+-]{1,40}){0,2}").fullmatch


class OpeningHours(msgspec.Struct, frozen=True):
    """The days (0 is Monday), the minutes of the day from which and until which it is open, and the zone."""

    days: frozenset[int]
    from_minute: int
    to_minute: int
    zone: str

    def is_open(self, at_ms: int) -> bool:
        """Whether a moment is within the hours."""
        local = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(_find_zone(self.zone))
        minute = local.hour * 60 + local.minute
        if self.from_minute < self.to_minute:
            return local.weekday() in self.days and self.from_minute <= minute < self.to_minute
        began_yesterday = (local.weekday() - 1) % 7 in self.days and minute < self.to_minute
        return began_yesterday or (local.weekday() in self.days and minute >= self.from_minute)


@lru_cache(maxsize=64)
def _find_zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


@lru_cache(maxsize=1024)
def parse_hours(text: str) -> OpeningHours:
    """The hours that a line says. Raises ValueError."""
    parts = text.split()
    if len(text) > MAX_LENGTH or len(parts) != 3:
        raise ValueError("it is not days, times and a time zone with a space between them")
    days = frozenset(day for part in parts[0].split(",") for day in _parse_days(part))
    from_minute, to_minute = _parse_times(parts[1])
    if _match_zone(parts[2]) is None:
        raise InvalidInput(parts[2][:40], "is no time zone")
    try:
        _find_zone(parts[2])
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(parts[2], "is no time zone") from None
    return OpeningHours(days, from_minute, to_minute, parts[2])


def canonicalize_hours(text: str) -> str:
    """The line with single spaces and the usual case of the days. Raises ValueError."""
    parse_hours(text)
    days, times, zone = text.split()
    return f"{days.title()} {times} {zone}"


def _parse_days(text: str) -> list[int]:
    first, _, last = text.partition("-")
    begin = _parse_day(first)
    end = _parse_day(last) if last or text.endswith("-") else begin
    return [(begin + step) % 7 for step in range((end - begin) % 7 + 1)]


def _parse_day(text: str) -> int:
    try:
        return DAYS.index(text.title())
    except ValueError:
        raise InvalidInput(text[:20], f"is none of {', '.join(DAYS)}") from None


def _parse_times(text: str) -> tuple[int, int]:
    found = _match_times(text)
    if found is None:
        raise InvalidInput(text[:20], "is not such as 09:00-18:00")
    from_hour, from_minute, to_hour, to_minute = map(int, found.groups())
    begin, end = from_hour * 60 + from_minute, to_hour * 60 + to_minute
    if max(from_minute, to_minute) > 59 or begin >= _DAY_MINUTES or end > _DAY_MINUTES:
        raise InvalidInput(text, "has a time that no day has")
    if begin == end:
        raise InvalidInput(text, "is no time at all")
    return begin, end
