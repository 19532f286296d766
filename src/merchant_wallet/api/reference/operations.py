"""The eight operations, field by field, in the order in which fields are checked and answered."""

from typing import Final, NamedTuple

from merchant_wallet.api.reference.fields import (
    ADDRESS,
    APP_KEY,
    ARRIVAL,
    CENT_AMOUNT,
    CHAIN,
    DECIMAL,
    LONG,
    LONG_OR_STRING,
    NONCE,
    NOTIFY_URL,
    PLAIN_DECIMAL,
    PLAIN_TEXT,
    SHORT_SIGN,
    SHOWN_ID,
    SIGN,
    STATUSES,
    STRING,
    TRANSFER_AMOUNT,
    WHOLE,
    Field,
)
from merchant_wallet.base.codes import (
    ADDRESS_NOT_LISTED,
    ADDRESS_UNUSABLE,
    AMOUNT_OUT_OF_RANGE,
    AMOUNT_WITHIN_FEE,
    APP_KEY_UNKNOWN,
    BALANCE_INSUFFICIENT,
    BODY_MALFORMED,
    BODY_TOO_LARGE,
    CHAIN_UNSUPPORTED,
    CURRENCY_UNSUPPORTED,
    DEBIT_NOT_ALLOWED,
    EXCHANGE_UNAVAILABLE,
    FIELD_INVALID,
    INTERNAL_FAULT,
    LIMIT_EXCEEDED,
    MEDIA_TYPE_UNSUPPORTED,
    MERCHANT_SUSPENDED,
    NONCE_REPEATED,
    NOTIFY_URL_UNACCEPTABLE,
    OPERATION_DISABLED,
    ORDER_ID_CONFLICT,
    ORDER_NOT_FOUND,
    SIGNATURE_MISMATCH,
    SOURCE_NOT_ALLOWED,
    SUBUSER_NOT_FOUND,
    TIMESTAMP_OUT_OF_TOLERANCE,
    TOO_MANY_REQUESTS,
    UNAVAILABLE,
    WALLET_NOT_FOUND,
)
from merchant_wallet.base.currencies import CURRENCIES, USDT

MERCHANT: Final = "/merchant/"


class OperationReference(NamedTuple):
    """One operation. `codes` are its own refusals, besides `COMMON_CODES`."""

    name: str
    group: str
    summary: str
    text: str
    request: tuple[Field, ...]
    answer: tuple[Field, ...]
    codes: tuple[int, ...] = ()
    prefix: str = MERCHANT

    @property
    def path(self) -> str:
        """The path, which is also the first line of the string to sign."""
        return self.prefix + self.name


COMMON_CODES: Final = (
    BODY_MALFORMED,
    FIELD_INVALID,
    APP_KEY_UNKNOWN,
    SIGNATURE_MISMATCH,
    TIMESTAMP_OUT_OF_TOLERANCE,
    NONCE_REPEATED,
    SOURCE_NOT_ALLOWED,
    MERCHANT_SUSPENDED,
    OPERATION_DISABLED,
    BODY_TOO_LARGE,
    MEDIA_TYPE_UNSUPPORTED,
    TOO_MANY_REQUESTS,
    INTERNAL_FAULT,
    UNAVAILABLE,
)
"""What any operation may answer."""

COMMON_FIELDS: Final = (
    Field("appKey", STRING, "who you are", 20, APP_KEY),
    Field(
        "timestamp", LONG, "this moment in UTC, [milliseconds or seconds](#timestamps-and-nonces)", 20, WHOLE
    ),
    Field("nonceStr", STRING, "new for every request; of `A-Z a-z 0-9 - _`", 32, NONCE),
    Field("sign", STRING, "the [signature](#signing-a-request)", 32, SIGN),
)

_SIGN: Final = Field("sign", STRING, at_most=32, pattern=SIGN)
_SHORT_SIGN: Final = Field("sign", STRING, "the first 20 characters", 20, SHORT_SIGN)
_OWN_CURRENCY: Final = Field(
    "currency", STRING, "`KFB`; `USDT` if your account has only USDT", values=CURRENCIES
)
_TRANSFER_AMOUNT: Final = Field("amount", STRING, "more than 0, at most 6 decimals", 20, TRANSFER_AMOUNT)
_TRANSFER_ID: Final = Field("mcOrderId", STRING, "your id of this transfer", 64, SHOWN_ID)
_STATUS: Final = Field(
    "txnStatus", STRING, "the [status](#withdrawal-statuses) at this moment", 6, values=STATUSES
)
_MOVING: Final = (AMOUNT_OUT_OF_RANGE, CURRENCY_UNSUPPORTED, ORDER_ID_CONFLICT)

REFERENCES: Final = (
    OperationReference(
        "transferFromUserToMerchant",
        "Transfers",
        "Debit a sub-user",
        "Takes `amount` from a sub-user's wallet. You receive `amountArrival`, which is `amount` less the "
        "fee.",
        (
            Field(
                "extUserId",
                STRING,
                "your id of the sub-user, known from a look-up; otherwise 40400",
                20,
                PLAIN_TEXT,
            ),
            _OWN_CURRENCY,
            _TRANSFER_AMOUNT,
            _TRANSFER_ID,
        ),
        (
            Field("transactionId", LONG, "our id of the transfer", 20),
            Field("amount", DECIMAL, "what the sub-user paid"),
            Field("amountArrival", DECIMAL, "what you received"),
            Field("rate", DECIMAL, "the fee's share of the amount"),
            Field("fee", DECIMAL, "the fee"),
            Field("currency", STRING, values=CURRENCIES),
            Field("mcOrderId", STRING),
            _SIGN,
        ),
        (
            *_MOVING,
            SUBUSER_NOT_FOUND,
            DEBIT_NOT_ALLOWED,
            AMOUNT_WITHIN_FEE,
            LIMIT_EXCEEDED,
            BALANCE_INSUFFICIENT,
        ),
    ),
    OperationReference(
        "transferFromMerchantToUser",
        "Transfers",
        "Credit a sub-user",
        "Gives `amount` from your balance to the sub-user that an address belongs to. There is no fee.",
        (
            _OWN_CURRENCY,
            _TRANSFER_AMOUNT,
            _TRANSFER_ID,
            Field(
                "address",
                STRING,
                "`address` or `tronAddress` of one of your sub-users; the first one also in small letters",
                128,
                PLAIN_TEXT,
            ),
        ),
        (
            Field("transactionId", LONG, "our id of the transfer", 20),
            Field("amount", DECIMAL, "what the sub-user received"),
            Field("currency", STRING, values=CURRENCIES),
            Field("mcOrderId", STRING),
            _SIGN,
        ),
        (*_MOVING, WALLET_NOT_FOUND, BALANCE_INSUFFICIENT, LIMIT_EXCEEDED),
    ),
    OperationReference(
        "createMerchantWithdrawOrder",
        "Withdrawals",
        "Create a withdrawal order",
        "Creates an order that pays USDT from your balance to an address on a chain. The amount leaves your "
        "balance at once. It is on hold until the order is paid, or until the amount is returned. Follow the "
        "order with `queryOrder`.",
        (
            Field("amount", STRING, "0.01 to 100000000, at most 2 decimals", 20, CENT_AMOUNT),
            Field(
                "chainType",
                STRING,
                "`ERC20` or `TRC20`; also `BEP20` if the operator has turned it on",
                20,
                values=(CHAIN,),
            ),
            Field("currency", STRING, "`USDT`", 20, values=(USDT,)),
            Field("mcOrderId", STRING, "your id of this order", 20, SHOWN_ID),
            Field("address", STRING, "the recipient, valid on that chain", 64, ADDRESS),
            Field(
                "notifyUrl",
                STRING,
                "the URL for callbacks: `https://`, in the sandbox also `http://`; no user info",
                100,
                NOTIFY_URL,
            ),
        ),
        (
            Field("orderId", LONG, "our id of the order; `queryOrder` needs it", 20),
            Field("mcOrderId", STRING, at_most=20),
            Field("amount", DECIMAL, "what left your balance"),
            Field("amountArrival", DECIMAL, "what the recipient gets: `amount` less the fee"),
            Field("currency", STRING, "`USDT`", 20, values=(USDT,)),
            Field("chainType", STRING, at_most=20, values=(CHAIN,)),
            Field("address", STRING, pattern=ADDRESS),
            _STATUS,
            _SHORT_SIGN,
        ),
        (
            *_MOVING,
            CHAIN_UNSUPPORTED,
            ADDRESS_UNUSABLE,
            NOTIFY_URL_UNACCEPTABLE,
            ADDRESS_NOT_LISTED,
            AMOUNT_WITHIN_FEE,
            LIMIT_EXCEEDED,
            BALANCE_INSUFFICIENT,
        ),
    ),
    OperationReference(
        "queryOrder",
        "Withdrawals",
        "Show a withdrawal order",
        "Shows a withdrawal order. Both ids must name the same order; otherwise 40401.",
        (
            Field("orderId", LONG, "from the creation's answer", 20, WHOLE),
            Field("mcOrderId", STRING, "yours", 20, PLAIN_TEXT),
        ),
        (
            Field("orderId", LONG, at_most=20),
            Field("currency", STRING, "`USDT`", 20, values=(USDT,)),
            Field("amount", DECIMAL),
            Field("rate", DECIMAL, "the fee's rate"),
            Field("fee", DECIMAL),
            Field("amountArrival", DECIMAL),
            Field("txnTime", LONG, "when the order was created", 20),
            Field("txnStatus", STRING, "the [status](#withdrawal-statuses)", 6, values=STATUSES),
            Field("createTime", LONG, "the same moment as `txnTime`", 20),
            Field(
                "mcOrderId",
                LONG_OR_STRING,
                "a number when your id is a plain whole number below 2^53 without leading zeros, else a text",
                20,
            ),
            Field(
                "notifyTime",
                LONG,
                "when the first callback was delivered; `null` until then",
                20,
                is_nullable=True,
            ),
            Field("extUserId", STRING, "always `null` for a withdrawal", 20, is_nullable=True),
            Field("chainType", STRING, at_most=20, values=(CHAIN,)),
            _SIGN,
        ),
        (ORDER_NOT_FOUND,),
    ),
    OperationReference(
        "getMerchantCustomer",
        "Accounts",
        "Find or open a sub-user's wallet",
        "Finds a sub-user. An unknown one is created, unless the operator has switched that off for you "
        "(then 40400).",
        (Field("extUserId", STRING, "your id of the sub-user", 20, SHOWN_ID),),
        (
            Field("userId", LONG, "our id of the sub-user", 20),
            Field("extUserId", STRING, at_most=20),
            Field("username", STRING, "at first the extUserId; the sub-user may change it", 128),
            Field("currency", STRING, "the currency of the wallet", 10, values=CURRENCIES),
            Field("balance", DECIMAL),
            Field(
                "url",
                STRING,
                "a link to the sub-user's [wallet page](#the-wallet-page), valid for 15 minutes; new in "
                "every answer",
                1024,
            ),
            Field("address", STRING, "the wallet's address, with EIP-55 checksum", 1024, ADDRESS),
            Field("tronAddress", STRING, "the wallet's address on TRON", 1024, ADDRESS),
            _SIGN,
        ),
        (SUBUSER_NOT_FOUND,),
    ),
    OperationReference(
        "getMerchantBalance",
        "Accounts",
        "Show your balances",
        "Takes the common fields only.",
        (),
        (
            Field("merchantId", LONG),
            Field("usdtBalance", DECIMAL, "without the amounts on hold"),
            Field("kfbBalance", DECIMAL),
            _SIGN,
        ),
    ),
    OperationReference(
        "exchange",
        "Accounts",
        "Exchange one currency for the other",
        "Exchanges one of your currencies for the other at the operator's present rate for that direction. "
        "An account that holds only USDT has nothing to exchange (40003).",
        (
            Field("amount", STRING, "what you give: 0.01 to 100000000, at most 2 decimals", 20, CENT_AMOUNT),
            Field("sendCurrency", STRING, "`USDT` or `KFB`", 20, values=CURRENCIES),
            Field("receiveCurrency", STRING, "the other one", 20, values=CURRENCIES),
            Field(
                "mcOrderId",
                STRING,
                "your id of this exchange; not in the specification, but "
                "[always send it](#idempotency-and-retries)",
                64,
                SHOWN_ID,
                is_required=False,
                is_nullable=True,
            ),
            Field(
                "minAmountArrival",
                STRING,
                "refuse (42203) if less than this would arrive; not in the specification",
                20,
                ARRIVAL,
                is_required=False,
                is_nullable=True,
            ),
        ),
        (
            Field("sendCurrency", STRING, at_most=20, values=CURRENCIES),
            Field("receiveCurrency", STRING, at_most=20, values=CURRENCIES),
            Field("amount", STRING, "what you gave", pattern=PLAIN_DECIMAL),
            Field(
                "amountArrival", STRING, "`amount` × `rate`, rounded down to 6 decimals", None, PLAIN_DECIMAL
            ),
            Field("rate", DECIMAL, "received per unit given"),
            Field("transactionId", LONG, "our id of the exchange"),
            _SHORT_SIGN,
        ),
        (*_MOVING, EXCHANGE_UNAVAILABLE, LIMIT_EXCEEDED, BALANCE_INSUFFICIENT),
    ),
    OperationReference(
        "getWithdrawFee",
        "Withdrawals",
        "Ask for a withdrawal's fee",
        "Returns what a withdrawal created now would cost.",
        (
            Field("amount", STRING, "0.01 to 100000000, at most 2 decimals", 15, CENT_AMOUNT),
            Field("currency", STRING, "`USDT`", 15, values=(USDT,)),
        ),
        (
            Field("amount", DECIMAL),
            Field("amountArrival", DECIMAL),
            Field("fee", DECIMAL),
            Field("rate", DECIMAL, "the fee's rate; your account's minimum may make the fee larger"),
            _SIGN,
        ),
        (AMOUNT_OUT_OF_RANGE, CURRENCY_UNSUPPORTED, AMOUNT_WITHIN_FEE),
    ),
)


def list_codes(reference: OperationReference) -> tuple[int, ...]:
    """Every code that an operation may refuse with, in the order of their numbers."""
    return tuple(sorted({*COMMON_CODES, *reference.codes}))
