"""`transferFromUserToMerchant` and `transferFromMerchantToUser` on the wire (interface 4.1, 4.2)."""

from merchant_wallet.api.amounts import require_transfer_amount
from merchant_wallet.api.operation import Operation, OperationContext
from merchant_wallet.api.wire import NUMBER, TEXT, DataItem, Fields, require, require_order_id
from merchant_wallet.base.addresses import parse_wallet_address
from merchant_wallet.base.codes import CURRENCY_UNSUPPORTED, refuse
from merchant_wallet.base.money import format_rate, format_units
from merchant_wallet.book.commands import MerchantToUser, UserToMerchant
from merchant_wallet.book.outcomes import Transferred
from merchant_wallet.merchants.records import Merchant

ORDER_ID_LENGTH = 64
NO_ADDRESS = b""
# The interface gives no maximum length, so an unknown currency of any length is refused as unknown.
_ANY_LENGTH = 16 * 1024


def _require_wallet_currency(merchant: Merchant, fields: Fields) -> str:
    currency = require(fields, "currency", _ANY_LENGTH)
    if currency != merchant.wallet_currency:
        refuse(CURRENCY_UNSUPPORTED, f"currency must be {merchant.wallet_currency} for this merchant")
    return currency


def _prepare_debit(merchant: Merchant, fields: Fields, context: OperationContext) -> UserToMerchant:
    ext_user_id = require(fields, "extUserId", 20)
    currency = _require_wallet_currency(merchant, fields)
    amount_units = require_transfer_amount(fields)
    mc_order_id = require_order_id(fields, "mcOrderId", ORDER_ID_LENGTH)
    return UserToMerchant(
        mc_order_id, ext_user_id, currency, amount_units, merchant.transfer_fee_rate_e8, merchant.require_pin
    )


def _answer_debit(merchant: Merchant, done: Transferred, context: OperationContext) -> list[DataItem]:
    return [
        ("transactionId", str(done.entry_id), NUMBER),
        ("amount", format_units(done.amount_units), NUMBER),
        ("amountArrival", format_units(done.arrival_units), NUMBER),
        ("rate", format_rate(done.rate_e8), NUMBER),
        ("fee", format_units(done.fee_units), NUMBER),
        ("currency", done.currency, TEXT),
        ("mcOrderId", done.mc_order_id, TEXT),
    ]


def _prepare_credit(merchant: Merchant, fields: Fields, context: OperationContext) -> MerchantToUser:
    currency = _require_wallet_currency(merchant, fields)
    amount_units = require_transfer_amount(fields)
    mc_order_id = require_order_id(fields, "mcOrderId", ORDER_ID_LENGTH)
    text = require(fields, "address", 128)
    try:
        _, address = parse_wallet_address(text)
    except ValueError:
        # No wallet has this address. The book refuses it, but only after the checks of nonce and known order.
        address = NO_ADDRESS
    return MerchantToUser(mc_order_id, address, currency, amount_units)


def _answer_credit(merchant: Merchant, done: Transferred, context: OperationContext) -> list[DataItem]:
    return [
        ("transactionId", str(done.entry_id), NUMBER),
        ("amount", format_units(done.amount_units), NUMBER),
        ("currency", done.currency, TEXT),
        ("mcOrderId", done.mc_order_id, TEXT),
    ]


TRANSFER_FROM_USER = Operation("transferFromUserToMerchant", _prepare_debit, _answer_debit)
TRANSFER_TO_USER = Operation("transferFromMerchantToUser", _prepare_credit, _answer_credit)
