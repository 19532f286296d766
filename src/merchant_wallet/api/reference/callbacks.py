"""The three callbacks, field by field, in the order of their bodies."""

from typing import Final, NamedTuple

from merchant_wallet.api.reference.fields import (
    ADDRESS,
    APP_KEY,
    CHAIN,
    LONG,
    NONCE,
    PLAIN_DECIMAL,
    SIGN,
    STRING,
    TX_HASH,
    Field,
)
from merchant_wallet.base.currencies import CURRENCIES, USDT
from merchant_wallet.callbacks.payloads import DEPOSIT
from merchant_wallet.callbacks.test_events import EVENT_TYPE as TEST

EVENT_ID: Final = "^evt_(?:[0-9]{1,18}|test)_[0-9a-z]{1,18}$"

_FIRST: Final = (
    Field("appKey", STRING, "your key", 20, APP_KEY),
    Field("timestamp", LONG, "the time of this attempt, in milliseconds"),
    Field("nonceStr", STRING, "new for each attempt", 32, NONCE),
    Field(
        "eventId",
        STRING,
        "the same at every attempt: store it, and ignore a callback whose eventId you have seen",
        pattern=EVENT_ID,
    ),
)
_SIGN: Final = Field(
    "sign",
    STRING,
    "signed like a request: first line `callback`, `null` fields left out, with your newest secret",
    32,
    SIGN,
)


class CallbackReference(NamedTuple):
    """One kind of callback."""

    name: str
    summary: str
    text: str
    fields: tuple[Field, ...]


ORDER: Final = CallbackReference(
    "orderStatus",
    "A withdrawal order reached a status",
    "Sent to the order's `notifyUrl` when the order reaches status 2, 3, 4, 5 or 6. The callbacks of one "
    "order are sent in order. Callbacks of orders have no `eventType`.",
    (
        *_FIRST,
        Field("orderId", LONG, "the order"),
        Field("mcOrderId", STRING, "your own id for it, always as text", 20),
        Field("amount", STRING, "what left your balance", pattern=PLAIN_DECIMAL),
        Field(
            "amountArrival", STRING, "what the recipient gets: `amount` less the fee", pattern=PLAIN_DECIMAL
        ),
        Field("fee", STRING, "the fee", pattern=PLAIN_DECIMAL),
        Field("rate", STRING, "the fee's rate", pattern=PLAIN_DECIMAL),
        Field("currency", STRING, "`USDT`", values=(USDT,)),
        Field("chainType", STRING, "as ordered", values=(CHAIN,)),
        Field("address", STRING, "as ordered", pattern=ADDRESS),
        Field(
            "txnStatus",
            STRING,
            "the status that this callback reports, even if the order has another status now",
            values=("2", "3", "4", "5", "6"),
        ),
        Field("txnTime", LONG, "when the order was created"),
        Field("createTime", LONG, "the same moment as `txnTime`"),
        Field("finishTime", LONG, "the time of this status"),
        Field(
            "txHash",
            STRING,
            "the transaction on the chain; `null` while there is none",
            pattern=TX_HASH,
            is_nullable=True,
        ),
        _SIGN,
    ),
)

DEPOSITED: Final = CallbackReference(
    "depositCredited",
    "A deposit was credited",
    "Sent to your deposit notification URL, if the operator has set one, when a deposit is credited.",
    (
        *_FIRST,
        Field("eventType", STRING, "`deposit`; callbacks of orders have no `eventType`", values=(DEPOSIT,)),
        Field("transactionId", LONG, "our id of the credit"),
        Field(
            "userId", LONG, "our id of the sub-user; `null` for your own deposit address", is_nullable=True
        ),
        Field(
            "extUserId",
            STRING,
            "your id of the sub-user; `null` for your own deposit address",
            20,
            is_nullable=True,
        ),
        Field("sendCurrency", STRING, "`USDT`", values=(USDT,)),
        Field("receiveCurrency", STRING, "the currency that was credited", values=CURRENCIES),
        Field("amount", STRING, "the amount that arrived", pattern=PLAIN_DECIMAL),
        Field("amountArrival", STRING, "the amount that was credited", pattern=PLAIN_DECIMAL),
        Field(
            "rate",
            STRING,
            "the rate of the exchange; `null` without one",
            pattern=PLAIN_DECIMAL,
            is_nullable=True,
        ),
        Field("chainType", STRING, "the chain where it arrived", values=(CHAIN,)),
        Field("address", STRING, "the address where it arrived", pattern=ADDRESS),
        Field("txnTime", LONG, "the time of the credit"),
        Field("createTime", LONG, "when the deposit was first seen"),
        Field(
            "txHash",
            STRING,
            "the transaction on the chain; with `logIndex` it identifies the deposit",
            pattern=TX_HASH,
        ),
        Field("logIndex", LONG, "counts the transaction's own logs from 0"),
        _SIGN,
    ),
)

TESTED: Final = CallbackReference(
    "endpointTest",
    "A test event",
    "Sent once, when your people ask for it in the console. It is signed like any other callback. It names "
    "no order and no deposit: never count it as money.",
    (
        *_FIRST,
        Field("eventType", STRING, "`test`", values=(TEST,)),
        Field("createTime", LONG, "when the test was asked for"),
        _SIGN,
    ),
)

CALLBACKS: Final = (ORDER, DEPOSITED, TESTED)

HEADERS: Final = {
    "webhook-id": "the eventId",
    "webhook-timestamp": "the time of this attempt, in seconds",
    "webhook-signature": "`v1,` and the Base64 of HMAC-SHA256 over `id.timestamp.body`; the key is your "
    "callbackSecret, decoded from Base64",
}
"""The headers of Standard Webhooks."""
