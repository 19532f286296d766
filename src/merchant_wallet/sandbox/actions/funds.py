"""`fund`: money from a tap, for a merchant's balance or a sub-user's wallet."""

from typing import Final, NamedTuple

from merchant_wallet.api.operation import OperationContext
from merchant_wallet.api.wire import NUMBER, TEXT, DataItem, Fields, optional, optional_order_id, require
from merchant_wallet.base.codes import CURRENCY_UNSUPPORTED, refuse
from merchant_wallet.base.currencies import CURRENCIES, USDT
from merchant_wallet.base.money import format_units, parse_amount
from merchant_wallet.book.commands import Adjust
from merchant_wallet.book.outcomes import Adjusted
from merchant_wallet.sandbox.context import Call
from merchant_wallet.sandbox.control import Action

MAX_UNITS: Final = 1_000_000 * 1_000_000
"""The most that one `fund` or `deposit` gives."""
REASON: Final = "test money from the sandbox's tap"
NAME_LENGTH: Final = 48
"""With its prefix an mcOrderId of this length still fits the name of an entry."""


class Fund(NamedTuple):
    """What is asked for."""

    currency: str
    amount_units: int
    ext_user_id: str | None
    mc_order_id: str | None


def require_test_amount(fields: Fields) -> int:
    """The `amount` of test money: more than 0, at most `MAX_UNITS`. Refused 40001, 40002."""
    text = require(fields, "amount", 20)
    return parse_amount(
        text, "amount", max_length=20, max_decimals=6, minimum_units=1, maximum_units=MAX_UNITS
    )


def _read(fields: Fields, context: OperationContext) -> Fund:
    currency = require(fields, "currency", 20)
    if currency not in CURRENCIES:
        refuse(CURRENCY_UNSUPPORTED, f"currency must be {' or '.join(CURRENCIES)}")
    amount_units = require_test_amount(fields)
    ext_user_id = optional(fields, "extUserId", 20)
    return Fund(currency, amount_units, ext_user_id, optional_order_id(fields, "mcOrderId", NAME_LENGTH))


async def _fund(call: Call, asked: Fund) -> list[DataItem]:
    if asked.currency != USDT and call.merchant.currency_mode == USDT:
        refuse(CURRENCY_UNSUPPORTED, f"currency: this merchant has {USDT} alone")
    name = None if asked.mc_order_id is None else f"sandbox {asked.mc_order_id}"
    command = Adjust(asked.currency, asked.amount_units, REASON, call.actor, asked.ext_user_id, name)
    subject = f"merchant {call.merchant_id}"
    if asked.ext_user_id is not None:
        subject = f"sub-user {asked.ext_user_id}"
    adjusted = await call.change_book(command, "sandbox.fund", subject)
    assert isinstance(adjusted, Adjusted)
    return [
        ("transactionId", str(adjusted.entry_id), NUMBER),
        ("currency", adjusted.currency, TEXT),
        ("amount", format_units(adjusted.amount_units), NUMBER),
        ("balance", format_units(adjusted.balance_units), NUMBER),
        ("extUserId", asked.ext_user_id, TEXT),
        ("mcOrderId", asked.mc_order_id, TEXT),
    ]


FUND: Final = Action(
    "fund",
    _read,
    _fund,
    (
        ("currency", "`USDT` or `KFB`"),
        ("amount", "more than 0, at most 1000000 and 6 decimals"),
        ("extUserId", "optional: to this sub-user's wallet, otherwise to your balance"),
        ("mcOrderId", "optional, at most 48: a repeat gives no second money"),
    ),
    "money from a tap. Answers `transactionId`, `balance`",
)
