"""`exchange` on the wire (interface 4.7)."""

from merchant_wallet.api.amounts import optional_arrival, require_cent_amount
from merchant_wallet.api.operation import Operation, OperationContext
from merchant_wallet.api.wire import NUMBER, TEXT, DataItem, Fields, optional_order_id, require
from merchant_wallet.base.codes import CURRENCY_UNSUPPORTED, refuse
from merchant_wallet.base.currencies import CURRENCIES, USDT
from merchant_wallet.base.money import format_rate, format_units
from merchant_wallet.book.commands import Exchange
from merchant_wallet.book.outcomes import Exchanged
from merchant_wallet.merchants.records import Merchant


def _require_currency(merchant: Merchant, fields: Fields, name: str) -> str:
    currency = require(fields, name, 20)
    if currency not in CURRENCIES:
        refuse(CURRENCY_UNSUPPORTED, f"{name} must be USDT or KFB")
    if merchant.currency_mode == USDT:
        refuse(CURRENCY_UNSUPPORTED, f"{name}: this merchant holds USDT alone and has nothing to exchange")
    return currency


def _prepare(merchant: Merchant, fields: Fields, context: OperationContext) -> Exchange:
    amount_units = require_cent_amount(fields)
    send = _require_currency(merchant, fields, "sendCurrency")
    receive = _require_currency(merchant, fields, "receiveCurrency")
    if send == receive:
        refuse(CURRENCY_UNSUPPORTED, "receiveCurrency must differ from sendCurrency")
    mc_order_id = optional_order_id(fields, "mcOrderId", 64)
    minimum = optional_arrival(fields, "minAmountArrival")
    return Exchange(mc_order_id, send, receive, amount_units, minimum, context.position_limit_units)


def _answer(merchant: Merchant, done: Exchanged, context: OperationContext) -> list[DataItem]:
    return [
        ("sendCurrency", done.send_currency, TEXT),
        ("receiveCurrency", done.receive_currency, TEXT),
        ("amount", format_units(done.amount_units), TEXT),
        ("amountArrival", format_units(done.arrival_units), TEXT),
        ("rate", format_rate(done.rate_e8), NUMBER),
        ("transactionId", str(done.entry_id), NUMBER),
    ]


EXCHANGE = Operation("exchange", _prepare, _answer, sign_length=20)
