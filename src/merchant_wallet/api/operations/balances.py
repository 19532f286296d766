"""`getMerchantBalance` on the wire (interface 4.6)."""

from merchant_wallet.api.operation import Operation, OperationContext
from merchant_wallet.api.wire import NUMBER, DataItem, Fields
from merchant_wallet.base.money import format_units
from merchant_wallet.book.commands import ReadBalances
from merchant_wallet.book.outcomes import Balances
from merchant_wallet.merchants.records import Merchant


def _prepare(merchant: Merchant, fields: Fields, context: OperationContext) -> ReadBalances:
    return ReadBalances()


def _answer(merchant: Merchant, balances: Balances, context: OperationContext) -> list[DataItem]:
    return [
        ("merchantId", str(merchant.merchant_id), NUMBER),
        ("usdtBalance", format_units(balances.usdt_units), NUMBER),
        ("kfbBalance", format_units(balances.kfb_units), NUMBER),
    ]


GET_BALANCE = Operation("getMerchantBalance", _prepare, _answer, only_reads=True)
