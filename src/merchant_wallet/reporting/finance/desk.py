"""The exchange desk: its position, what it is worth, and its result in a period.

How it is computed:
- The position is the desk's balance in each currency. A merchant's exchange gives the desk one currency and
  takes the other, so one of the two is usually below zero.
- KFB is valued in USDT at the middle of the platform's two rates in force at that moment.
- The result of a period is the position's value at its end less its value at its beginning. One part is the
  revaluation: what the opening position gained because the middle rate moved. The other is from exchanges.
- Without a rate there is no value, and no result.
"""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Final

import msgspec

from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import Queries
from merchant_wallet.base.money import RATE_SCALE
from merchant_wallet.book.chart import EXCHANGE
from merchant_wallet.exchange.rates import KFB_TO_USDT, PLATFORM, USDT_TO_KFB
from merchant_wallet.reporting.finance.reports import Report
from merchant_wallet.reporting.paging import Connection, fetch

QUERIES: Final = Queries(Path(__file__).with_name("desk.sql"))


class Position(msgspec.Struct, frozen=True):
    """The desk at one moment. `middle_e8` is the value of one KFB in USDT, in 10**-8; None without a rate."""

    usdt_units: int
    kfb_units: int
    middle_e8: int | None

    @property
    def value_units(self) -> int | None:
        """What it is worth in USDT."""
        if self.middle_e8 is None:
            return None if self.kfb_units else self.usdt_units
        return self.usdt_units + _value(self.kfb_units, self.middle_e8)


class DeskResult(msgspec.Struct, frozen=True):
    """The desk in a period."""

    opening: Position
    closing: Position

    @property
    def result_units(self) -> int | None:
        """What it has gained in USDT."""
        before, after = self.opening.value_units, self.closing.value_units
        return None if before is None or after is None else after - before

    @property
    def revaluation_units(self) -> int | None:
        """The part from a rate that moved."""
        before, after = self.opening.middle_e8, self.closing.middle_e8
        if not self.opening.kfb_units:
            return 0
        if before is None or after is None:
            return None
        return _value(self.opening.kfb_units, after) - _value(self.opening.kfb_units, before)

    @property
    def trading_units(self) -> int | None:
        """The part from exchanges, at the closing rate."""
        result, revaluation = self.result_units, self.revaluation_units
        return None if result is None or revaluation is None else result - revaluation


def _value(kfb_units: int, middle_e8: int) -> int:
    return round(Fraction(kfb_units * middle_e8, RATE_SCALE))


def find_middle(rates: Mapping[str, int]) -> int | None:
    """The value of one KFB in USDT, in 10**-8, from both directions or the one that there is. Pure."""
    values = []
    if sold := rates.get(USDT_TO_KFB):
        values.append(Fraction(RATE_SCALE * RATE_SCALE, sold))
    if bought := rates.get(KFB_TO_USDT):
        values.append(Fraction(bought))
    return round(sum(values, Fraction()) / len(values)) if values else None


async def read_middle(home: Connection, before_ms: int) -> int | None:
    """The middle rate in force just before a moment."""
    values = {
        "directions": [USDT_TO_KFB, KFB_TO_USDT],
        "platform": PLATFORM,
        "before_ms": before_ms,
    }
    rows = await fetch(home, QUERIES["find_rates"].text, values)
    return find_middle({row["direction"]: row["rate_e8"] for row in rows})


async def read_desk(home: Connection, report: Report, now_ms: int) -> DeskResult:
    """The desk in a report's period. A period that has not ended is valued now."""
    usdt, kfb = report.find(EXCHANGE, USDT), report.find(EXCHANGE, KFB)
    period = report.period
    opening = await read_middle(home, period.since_ms)
    closing = await read_middle(home, min(period.until_ms, now_ms + 1))
    return DeskResult(
        Position(usdt.opening_units, kfb.opening_units, opening),
        Position(usdt.closing_units, kfb.closing_units, closing),
    )
