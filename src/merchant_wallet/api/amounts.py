"""The amount fields of requests, with the interface's bounds (sections 4 and 8)."""

from merchant_wallet.api.wire import Fields, optional, require
from merchant_wallet.base.money import parse_amount

MAX_AMOUNT_UNITS = 100_000_000 * 1_000_000
CENT_UNITS = 10_000
MAX_ARRIVAL_UNITS = 10**18 - 1
"""12 digits before the point: a bound that the description's pattern can say exactly."""


def require_transfer_amount(fields: Fields) -> int:
    """A transfer's `amount`: above 0, at most 6 decimals. Refused 40001, 40002."""
    text = require(fields, "amount", 20)
    return parse_amount(
        text, "amount", max_length=20, max_decimals=6, minimum_units=1, maximum_units=MAX_AMOUNT_UNITS
    )


def require_cent_amount(fields: Fields, max_length: int = 20) -> int:
    """The `amount` of a withdrawal, exchange or quotation: from 0.01, at most 2 decimals. Refused 40001,
    40002."""
    text = require(fields, "amount", max_length)
    return parse_amount(
        text,
        "amount",
        max_length=max_length,
        max_decimals=2,
        minimum_units=CENT_UNITS,
        maximum_units=MAX_AMOUNT_UNITS,
    )


def optional_arrival(fields: Fields, name: str) -> int | None:
    """An optional minimum to arrive: 0 or more, at most 6 decimals. Refused 40001, 40002."""
    text = optional(fields, name, 20)
    if text is None:
        return None
    return parse_amount(
        text, name, max_length=20, max_decimals=6, minimum_units=0, maximum_units=MAX_ARRIVAL_UNITS
    )
