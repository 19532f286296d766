"""A merchant's rules for its payouts: how much and how many within a window, first payouts, hours. Pure.

Rules:
- A rule holds. It never refuses: the order waits until a person has looked.
- The limits are about orders that were cleared within the window, this one included. At the limit it passes.
- Outside the hours an order waits, and goes on by itself when they begin.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from merchant_wallet.base.money import format_units
from merchant_wallet.base.opening_hours import parse_hours
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.screening.verdicts import Reason, Source, Verdict

TEXTS: Final[Mapping[Source, str]] = {
    Source.AMOUNT: "{amount} USDT within {hours} h, more than {limit}",
    Source.COUNT: "{count} payouts within {hours} h, more than {limit}",
    Source.FIRST: "never paid before, and more than {limit} USDT",
}
"""How a rule that holds says so."""


class PayoutRules(msgspec.Struct, frozen=True):
    """The rules of one merchant. None: there is no such rule."""

    limit_units: int | None = None
    limit_count: int | None = None
    window_h: int = 24
    first_limit_units: int | None = None
    hours: str | None = None

    @property
    def has_limits(self) -> bool:
        """Whether what was cleared before matters."""
        return self.limit_units is not None or self.limit_count is not None

    @property
    def is_empty(self) -> bool:
        """Whether there is no rule."""
        return not self.has_limits and self.first_limit_units is None and self.hours is None

    def begin_window(self, at_ms: int) -> int:
        """The moment after which the window begins."""
        return at_ms - self.window_h * HOUR_MS

    def is_open(self, at_ms: int) -> bool:
        """Whether payouts are made now. Raises ValueError for hours that nobody can read."""
        return self.hours is None or parse_hours(self.hours).is_open(at_ms)


class Cleared(msgspec.Struct, frozen=True):
    """What was cleared of the merchant's orders within the window, without the one that is judged."""

    count: int = 0
    units: int = 0


def judge(rules: PayoutRules, amount_units: int, cleared: Cleared, *, was_paid: bool) -> tuple[Reason, ...]:
    """Why the order is held; empty if no rule says so. `was_paid`: the address was paid before."""
    return tuple(_list_broken(rules, amount_units, cleared, was_paid))


def _list_broken(rules: PayoutRules, amount_units: int, cleared: Cleared, was_paid: bool) -> Iterator[Reason]:
    units, count, hours = cleared.units + amount_units, cleared.count + 1, str(rules.window_h)
    if rules.limit_units is not None and units > rules.limit_units:
        limit = format_units(rules.limit_units)
        yield _hold(Source.AMOUNT, amount=format_units(units), hours=hours, limit=limit)
    if rules.limit_count is not None and count > rules.limit_count:
        yield _hold(Source.COUNT, count=str(count), hours=hours, limit=str(rules.limit_count))
    first = rules.first_limit_units
    if first is not None and amount_units > first and not was_paid:
        yield _hold(Source.FIRST, limit=format_units(first))


def _hold(source: Source, **values: str) -> Reason:
    return Reason(source, Verdict.HOLD, TEXTS[source].format(**values), values)
