"""A merchant's rules for its payouts: how much and how many within a window, first payouts, hours. Pure.

Rules:
- A rule holds. It never refuses: the order waits until a person has looked.
- The limits are about orders that were cleared within the window, this one included. At the limit it passes.
- Outside the hours an order waits, and goes on by itself when they begin.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from merchant_wallet.base.money import format_units
from merchant_wallet.base.opening_hours import parse_hours
from merchant_wallet.screening.verdicts import Reason, Source, Verdict

HOUR_MS: Final = 3_600_000


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
    units, count = cleared.units + amount_units, cleared.count + 1
    if rules.limit_units is not None and units > rules.limit_units:
        limit = format_units(rules.limit_units)
        text = f"{format_units(units)} USDT within {rules.window_h} h, more than {limit}"
        yield Reason(Source.AMOUNT, Verdict.HOLD, text)
    if rules.limit_count is not None and count > rules.limit_count:
        text = f"{count} orders within {rules.window_h} h, more than {rules.limit_count}"
        yield Reason(Source.COUNT, Verdict.HOLD, text)
    first = rules.first_limit_units
    if first is not None and amount_units > first and not was_paid:
        text = f"never paid before, and more than {format_units(first)} USDT"
        yield Reason(Source.FIRST, Verdict.HOLD, text)
