"""Amounts, percentages and times as people type them, and as the settings have them. Pure.

Rules:
- An amount is typed as pages print it: `1,000.50`, or `1000.5`. A comma elsewhere is named, since it may be
  meant as a decimal point.
- A percentage is typed with its sign: `0.5%` is stored as the share `0.005`. A bare number but 0 is refused:
  `0.5` is half a percent for one person, and half of all for another.
- A time is typed in hours: `1.5` or `1.5 h`. Minutes and seconds are typed with their unit: `30 min`, `90 s`.
- What is shown can be typed again and gives exactly the same value.
"""

import re
from decimal import Decimal
from typing import Final

from merchant_wallet.base.money import parse_units
from merchant_wallet.web.languages import N_

MOST_BARE_HOURS: Final = 720
NO_AMOUNT: Final = N_("An amount with at most 6 decimals, such as 1,000.50.")
COMMA: Final = N_("A comma is in a wrong place in {amount}. Decimals come after a point, such as 8.20.")
NO_PERCENT: Final = N_("A percentage from 0% to 100% with up to 6 decimals, such as 0.5%.")
BARE_SHARE: Final = N_("{typed} can mean {typed}% or {share}%: write {typed}% or {share}%.")
BARE_PERCENT: Final = N_("Write the percent sign: {typed}%.")
NO_TIME: Final = N_("Hours such as 1.5, or 30 min or 90 s. Empty: for good.")
LONG_TIME: Final = N_(
    "Hours are typed here. If you mean {typed} hours, type {typed} h; seconds are {typed} s."
)
_MOST_SHOWN: Final = 40
_NUMBER: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?")
_UNITS_S: Final = {"h": 3600, "min": 60, "s": 1}
_TIME: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?(h|min|s|)")


class TypedWrong(ValueError):
    """The typed text is no value. `text` is the sentence, `values` fill its gaps."""

    def __init__(self, text: str, **values: str) -> None:
        super().__init__(text.format(**values))
        self.text = text
        self.values = values


def read_amount(typed: str, otherwise: str = NO_AMOUNT) -> int:
    """The units of a typed amount. Raises TypedWrong, whose text is `otherwise` if no comma is wrong."""
    try:
        return parse_units(typed.strip())
    except ValueError:
        if "," in typed:
            raise TypedWrong(COMMA, amount=typed[:_MOST_SHOWN]) from None
        raise TypedWrong(otherwise) from None


def show_percent(share: str) -> str:
    """A stored share as a percentage."""
    return f"{_plain(Decimal(share) * 100)}%"


def read_percent(typed: str) -> str:
    """The share that is stored for a typed percentage. Raises TypedWrong."""
    text = typed.strip().replace("\uff05", "%")
    number = text.removesuffix("%").strip()
    if not _NUMBER.fullmatch(number) or Decimal(number) > 100:
        raise TypedWrong(NO_PERCENT)
    percent = Decimal(number)
    if percent and not text.endswith("%"):
        if percent > 1:
            raise TypedWrong(BARE_PERCENT, typed=number)
        raise TypedWrong(BARE_SHARE, typed=number, share=_plain(percent * 100))
    return _plain(percent / 100)


def show_time(age_ms: int) -> str:
    """A time in the largest unit that shows it exactly."""
    seconds = Decimal(age_ms) / 1000
    for unit, in_s in _UNITS_S.items():
        if seconds >= in_s and (seconds / in_s * 4) % 1 == 0:
            return f"{_plain(seconds / in_s)} {unit}"
    return f"{_plain(seconds)} s"


def read_time_ms(typed: str, longest_s: int) -> int:
    """The milliseconds of a typed time, whole seconds above 0. Raises TypedWrong."""
    found = _TIME.fullmatch(typed.strip().lower())
    if found is None:
        raise TypedWrong(NO_TIME)
    number, unit = found.groups()
    if not unit and Decimal(number) > MOST_BARE_HOURS:
        raise TypedWrong(LONG_TIME, typed=number)
    seconds = Decimal(number) * _UNITS_S[unit or "h"]
    if seconds % 1 or not 0 < seconds <= longest_s:
        raise TypedWrong(NO_TIME)
    return int(seconds) * 1000


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
