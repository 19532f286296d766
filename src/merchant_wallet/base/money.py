"""Amounts and rates: text to integers and back, and the two ways of rounding.

Rules:
- An amount is an integer number of units. A unit is 10**-6 of a coin of any currency. A rate is an integer
  number of 10**-8.
- No float is ever used.
- A fee is rounded half up, an exchanged amount is rounded down.
- `parse_amount` parses amounts of requests and refuses with the interface's codes. `parse_units` and
  `parse_rate` parse what operators type and raise ValueError.
"""

import re
from functools import lru_cache
from typing import Final

from merchant_wallet.base.codes import AMOUNT_OUT_OF_RANGE, FIELD_INVALID, refuse
from merchant_wallet.base.currencies import LEDGER_DECIMALS
from merchant_wallet.base.user_input import InvalidInput

UNITS_DECIMALS: Final = LEDGER_DECIMALS
UNITS_PER_COIN: Final = 10**UNITS_DECIMALS
RATE_DECIMALS: Final = 8
RATE_SCALE: Final = 10**RATE_DECIMALS
MAX_RATE_E8: Final = 1_000_000 * RATE_SCALE
MAX_RATE_AGE_S: Final = 3_153_600_000
"""The longest maximum age of a rate: a hundred years."""
# The sum of two balances still fits into a signed 64-bit column.
MAX_BALANCE_UNITS: Final = 2**62

_SHORTEST: Final = UNITS_DECIMALS + 1
"""Digits of an amount before its point is set: at least one is before it."""
_is_grouped = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?").fullmatch
_match_decimal = re.compile(r"(0|[1-9][0-9]*)(?:\.([0-9]+))?").fullmatch
# Much longer than any real input, and much shorter than the length at which int() raises an error.
_MAX_TYPED_LENGTH: Final = 40


def parse_amount(
    text: str,
    field: str,
    *,
    max_length: int,
    max_decimals: int,
    minimum_units: int,
    maximum_units: int,
) -> int:
    """The units of an amount in a request. `field` is the field's name in refusals.

    Refuses 40001 if it is longer than `max_length` or not a plain decimal (no sign, exponent, grouping,
    leading zero or bare point). Refuses 40002 if it has more decimals as written than `max_decimals` (at most
    6), or is outside [`minimum_units`, `maximum_units`]. Interface 4.1 to 4.8 and 8.
    """
    if len(text) > max_length:
        refuse(FIELD_INVALID, f"{field} must have at most {max_length} characters")
    match = _match_decimal(text)
    if match is None:
        refuse(
            FIELD_INVALID,
            f"{field} must be a plain decimal such as 12.5, without sign, exponent or leading zeros",
        )
    whole, fraction = match.groups("")
    if len(fraction) > max_decimals:
        refuse(AMOUNT_OUT_OF_RANGE, f"{field} must have at most {max_decimals} decimals")
    units = _scale(whole, fraction, UNITS_DECIMALS)
    if not minimum_units <= units <= maximum_units:
        low, high = format_units(minimum_units), format_units(maximum_units)
        refuse(AMOUNT_OUT_OF_RANGE, f"{field} must be between {low} and {high}")
    return units


def parse_units(text: str) -> int:
    """The units of an amount that an operator types: at most 6 decimals, up to MAX_BALANCE_UNITS.

    Raises ValueError with a sentence for the terminal.
    """
    units = _parse_typed(text, UNITS_DECIMALS)
    if units > MAX_BALANCE_UNITS:
        raise ValueError(f"{text} is more than {format_units(MAX_BALANCE_UNITS)}, the largest amount kept")
    return units


def parse_rate(text: str, *, minimum_e8: int = 1, maximum_e8: int = MAX_RATE_E8) -> int:
    """A typed rate in parts of 10**-8: at most 8 decimals, by default above 0 and at most 1000000.

    A fee rate is parsed with `minimum_e8=0` and a smaller maximum. Raises ValueError with a sentence for the
    terminal.
    """
    rate_e8 = _parse_typed(text, RATE_DECIMALS)
    if not minimum_e8 <= rate_e8 <= maximum_e8:
        raise ValueError(f"{text} is not between {format_rate(minimum_e8)} and {format_rate(maximum_e8)}")
    return rate_e8


@lru_cache(maxsize=1024)
def format_units(units: int) -> str:
    """The shortest plain decimal of an amount: `100`, `100.5`, `0.000001`, with a minus sign if negative.

    Cached, since an answer has the same amount two or three times, and its fee is mostly that of others.
    """
    # To cut the digits takes half as long as to divide.
    digits = str(units).zfill(_SHORTEST if units >= 0 else _SHORTEST + 1)
    whole, rest = digits[:-UNITS_DECIMALS], digits[-UNITS_DECIMALS:].rstrip("0")
    return f"{whole}.{rest}" if rest else whole


def format_rate(rate_e8: int) -> str:
    """The shortest plain decimal of a rate, which is never negative."""
    whole, rest = divmod(rate_e8, RATE_SCALE)
    return f"{whole}.{rest:08d}".rstrip("0") if rest else str(whole)


def compute_fee_units(amount_units: int, rate_e8: int) -> int:
    """`amount_units` × rate, rounded half up to a unit. Neither is negative."""
    return (amount_units * rate_e8 + RATE_SCALE // 2) // RATE_SCALE


def compute_exchange_units(amount_units: int, rate_e8: int) -> int:
    """`amount_units` × rate, rounded down to a unit. Neither is negative.

    The result may be 0; the caller checks that.
    """
    return amount_units * rate_e8 // RATE_SCALE


def _scale(whole: str, fraction: str, decimals: int) -> int:
    return int(whole + fraction.ljust(decimals, "0"))


def _parse_typed(text: str, decimals: int) -> int:
    # Pages print 1,000.50, and people copy that.
    plain = text.replace(",", "") if _is_grouped(text) else text
    match = _match_decimal(plain) if len(text) <= _MAX_TYPED_LENGTH else None
    if match is None and "," in text:
        raise InvalidInput(
            text[:_MAX_TYPED_LENGTH], "is not a plain decimal number such as 12.5: it has a comma"
        )
    if match is None:
        if text[:1] == "-" and len(text) <= _MAX_TYPED_LENGTH and _match_decimal(text[1:]):
            raise InvalidInput(text, "is below 0")
        raise InvalidInput(text[:_MAX_TYPED_LENGTH], "is not a plain decimal number such as 12.5")
    whole, fraction = match.groups("")
    if len(fraction) > decimals:
        raise ValueError(f"{text} has more than {decimals} decimals")
    return _scale(whole, fraction, decimals)
