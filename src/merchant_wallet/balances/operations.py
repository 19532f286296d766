"""`getMerchantBalance` on the wire (interface 4.6)."""

from merchant_wallet.book.commands import ReadBalances
from merchant_wallet.book.outcomes import Balances
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.money import format_units
from merchant_wallet.operation import Operation, Terms
from merchant_wallet.wire import NUMBER, DataItem, Fields


def _prepare(merchant: Merchant, fields: Fields, terms: Terms) -> ReadBalances:
    return ReadBalances()


def _answer(merchant: Merchant, balances: Balances, terms: Terms) -> list[DataItem]:
    return [
        ("merchantId", str(merchant.merchant_id), NUMBER),
        ("usdtBalance", format_units(balances.usdt_units), NUMBER),
        ("kfbBalance", format_units(balances.kfb_units), NUMBER),
    ]


GET_BALANCE = Operation("getMerchantBalance", _prepare, _answer, only_reads=True)
