"""Every operation of the interface once, as one story, to compare how it goes in different places."""

from typing import Any

from tests.journeys.conftest import Shop
from tests.journeys.orders import credit, debit, exchange, quote, withdrawal

DIFFERING = [
    "address",
    "createTime",
    "evmAddress",
    "merchantId",
    "orderId",
    "sign",
    "transactionId",
    "tronAddress",
    "txnTime",
    "url",
    "userId",
]
"""Fields of answers that are different for each merchant."""
DEBIT, CREDIT = "transferFromUserToMerchant", "transferFromMerchantToUser"


def open_account(shop: Shop) -> Shop:
    """The merchant with 1000 KFB, whose user alice has 500."""
    shop.fund("KFB", "1000")
    answer = shop.client.do("getMerchantCustomer", extUserId="alice")
    shop.client.do(CREDIT, **credit("opening", answer["address"], "500"))
    return shop


def call_each(shop: Shop) -> dict[str, Any]:
    """Code and fields of every operation and of some refusals, without what is each merchant's own."""
    client = shop.client
    alice = client.do("getMerchantCustomer", extUserId="alice")
    answers = {
        "customer": alice,
        "credit": client.do(CREDIT, **credit("c1", alice["address"], "100")),
        "credit again": client.do(CREDIT, **credit("c1", alice["address"], "100")),
        "debit": client.do(DEBIT, **debit("d1", "30")),
        "too large a debit": client.call(DEBIT, **debit("d2", "5000")),
        "exchange": client.do("exchange", **exchange("50", "KFB", "USDT")),
        "quote": client.do("getWithdrawFee", **quote("3")),
        "order": (order := client.do("createMerchantWithdrawOrder", **withdrawal("w1", "3"))),
        "query": client.do("queryOrder", orderId=order["orderId"], mcOrderId="w1"),
        "unknown order": client.call("queryOrder", orderId="7", mcOrderId="w7"),
        "new customer": client.do("getMerchantCustomer", extUserId="bob"),
        "balances": client.do("getMerchantBalance"),
    }
    return {
        name: (answer.code, {key: of for key, of in (answer.data or {}).items() if key not in DIFFERING})
        for name, answer in answers.items()
    }
