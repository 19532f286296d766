"""A preview of fees and exchanges with typed settings that are not saved yet. Pure.

Rules: the amounts come from the functions that the book uses. If one can't be computed, the preview says why.
"""

from dataclasses import dataclass
from typing import Final

from merchant_wallet.base.money import (
    RATE_SCALE,
    compute_exchange_units,
    compute_fee_units,
    parse_rate,
    parse_units,
)
from merchant_wallet.book.rules.withdrawals import compute_withdrawal_fee
from merchant_wallet.exchange.rates import DIRECTIONS
from merchant_wallet.web.languages import N_
from merchant_wallet.web.typed_values import read_percent

SAMPLE: Final = "1000"
_NO_AMOUNT: Final = N_("Type an amount such as 1000.")
_NO_RATE: Final = N_("No rate: refused.")
_NOT_ABOVE_FEE: Final = N_("The fee takes it all: refused.")
_NOTHING_ARRIVES: Final = N_("Too little to arrive: refused.")


@dataclass(frozen=True, slots=True)
class Quote:
    """The result for an amount: fee and arrival in units, or why there is none."""

    label: str
    sent_currency: str
    currency: str
    fee_units: int = 0
    arrival_units: int = 0
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """All quotes of one amount. `problem`: the amount is invalid."""

    amount_units: int = 0
    quotes: tuple[Quote, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The rates and fees of the quotes. None: it is not set or invalid."""

    transfer_rate_e8: int | None
    withdraw_rate_e8: int | None
    withdraw_minimum_units: int | None
    rates_e8: tuple[tuple[str, int | None], ...]
    has_kfb: bool


def preview(amount: str, conditions: Conditions) -> Preview:
    """The results for the typed amount."""
    try:
        amount_units = parse_units(amount.strip())
    except ValueError:
        return Preview(problem=_NO_AMOUNT)
    if not amount_units:
        return Preview(problem=_NO_AMOUNT)
    currency = "KFB" if conditions.has_kfb else "USDT"
    quotes = [
        _charge(
            N_("Transfer to the merchant"), currency, amount_units, _transfer_fee(amount_units, conditions)
        ),
        _charge(N_("Withdrawal"), "USDT", amount_units, _withdrawal_fee(amount_units, conditions)),
    ]
    if conditions.has_kfb:
        quotes += [_exchange(direction, amount_units, rate) for direction, rate in conditions.rates_e8]
    return Preview(amount_units, tuple(quotes))


def read_share(text: str) -> int | None:
    """The share of a typed percentage, or None."""
    try:
        return parse_rate(read_percent(text), minimum_e8=0, maximum_e8=RATE_SCALE)
    except ValueError:
        return None


def read_rate(text: str) -> int | None:
    """A typed rate, or None."""
    try:
        return parse_rate(text.strip())
    except ValueError:
        return None


def read_amount(text: str) -> int | None:
    """A typed amount, or None."""
    try:
        return parse_units(text.strip())
    except ValueError:
        return None


def _transfer_fee(amount_units: int, conditions: Conditions) -> int | None:
    rate = conditions.transfer_rate_e8
    return None if rate is None else compute_fee_units(amount_units, rate)


def _withdrawal_fee(amount_units: int, conditions: Conditions) -> int | None:
    rate, minimum = conditions.withdraw_rate_e8, conditions.withdraw_minimum_units
    return None if rate is None or minimum is None else compute_withdrawal_fee(amount_units, rate, minimum)


def _charge(label: str, currency: str, amount_units: int, fee: int | None) -> Quote:
    if fee is None:
        return Quote(label, currency, currency, refusal=N_("The fee is not a value."))
    if fee >= amount_units:
        return Quote(label, currency, currency, fee, 0, _NOT_ABOVE_FEE)
    return Quote(label, currency, currency, fee, amount_units - fee)


def _exchange(direction: str, amount_units: int, rate_e8: int | None) -> Quote:
    assert direction in DIRECTIONS
    sent, received = direction.split(":")
    label = N_("Exchange {sent} to {received}")
    if rate_e8 is None:
        return Quote(label, sent, received, refusal=_NO_RATE)
    arrival = compute_exchange_units(amount_units, rate_e8)
    return Quote(label, sent, received, 0, arrival, "" if arrival else _NOTHING_ARRIVES)
