"""The business codes of the interface, and refusals.

`CODES` is the only table. The documentation's table is generated from it. A refusal is a value, `Refusal`,
where it is one outcome among others. It is an exception, `Refused`, only in checks of the gate or the field
parsers, which end the request at once. Both become the same envelope (see `wire`).

Rules: a code never changes its meaning. `msg` names the field and the rule that it breaks. `msg` and
`payload` never contain a secret.
"""

from typing import Any, Final, Literal, NamedTuple, NoReturn

import msgspec

Retry = Literal[
    "no retry",
    "never",
    "later",
    "new timestamp",
    "new nonceStr",
    "after the sub-user acts",
    "after funding",
    "after Retry-After",
    "same mcOrderId",
]

SUCCESS: Final = 200

# Answers of the transport itself: the code is the HTTP status.
PATH_UNKNOWN: Final = 404
METHOD_NOT_ALLOWED: Final = 405
BODY_TOO_LARGE: Final = 413
MEDIA_TYPE_UNSUPPORTED: Final = 415

BODY_MALFORMED: Final = 40000
FIELD_INVALID: Final = 40001
AMOUNT_OUT_OF_RANGE: Final = 40002
CURRENCY_UNSUPPORTED: Final = 40003
CHAIN_UNSUPPORTED: Final = 40004
ADDRESS_UNUSABLE: Final = 40005
NOTIFY_URL_UNACCEPTABLE: Final = 40006
APP_KEY_UNKNOWN: Final = 40100
SIGNATURE_MISMATCH: Final = 40101
TIMESTAMP_OUT_OF_TOLERANCE: Final = 40102
NONCE_REPEATED: Final = 40103
SOURCE_NOT_ALLOWED: Final = 40104
MERCHANT_SUSPENDED: Final = 40300
OPERATION_DISABLED: Final = 40301
DEBIT_NOT_ALLOWED: Final = 40302
SUBUSER_NOT_FOUND: Final = 40400
ORDER_NOT_FOUND: Final = 40401
WALLET_NOT_FOUND: Final = 40402
ADDRESS_NOT_LISTED: Final = 40403
ORDER_ID_CONFLICT: Final = 40900
BALANCE_INSUFFICIENT: Final = 42200
AMOUNT_WITHIN_FEE: Final = 42201
LIMIT_EXCEEDED: Final = 42202
EXCHANGE_UNAVAILABLE: Final = 42203
TOO_MANY_REQUESTS: Final = 42900
INTERNAL_FAULT: Final = 50000
UNAVAILABLE: Final = 50300


class Code(NamedTuple):
    """One row of the code table: number, constant's name, meaning, when to retry, HTTP status."""

    code: int
    name: str
    meaning: str
    retry: Retry
    http_status: int


_ROWS: Final = (
    Code(SUCCESS, "SUCCESS", "the operation was carried out", "no retry", 200),
    Code(PATH_UNKNOWN, "PATH_UNKNOWN", "no operation has this path", "never", 404),
    Code(METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", "this path accepts only POST", "never", 405),
    Code(BODY_TOO_LARGE, "BODY_TOO_LARGE", "the request body is longer than 16 KiB", "never", 413),
    Code(
        MEDIA_TYPE_UNSUPPORTED, "MEDIA_TYPE_UNSUPPORTED", "the body is neither JSON nor a form", "never", 415
    ),
    Code(BODY_MALFORMED, "BODY_MALFORMED", "the body cannot be read as one object of fields", "never", 200),
    Code(FIELD_INVALID, "FIELD_INVALID", "a field is absent, too long or of the wrong form", "never", 200),
    Code(
        AMOUNT_OUT_OF_RANGE,
        "AMOUNT_OUT_OF_RANGE",
        "an amount has too many decimals or is out of range",
        "never",
        200,
    ),
    Code(
        CURRENCY_UNSUPPORTED,
        "CURRENCY_UNSUPPORTED",
        "this operation does not take that currency",
        "never",
        200,
    ),
    Code(
        CHAIN_UNSUPPORTED,
        "CHAIN_UNSUPPORTED",
        "this chain is not enabled (by default ERC20 and TRC20 are)",
        "never",
        200,
    ),
    Code(
        ADDRESS_UNUSABLE,
        "ADDRESS_UNUSABLE",
        "money sent to this address would be lost",
        "never",
        200,
    ),
    Code(
        NOTIFY_URL_UNACCEPTABLE,
        "NOTIFY_URL_UNACCEPTABLE",
        "callbacks cannot go to this notifyUrl",
        "never",
        200,
    ),
    Code(APP_KEY_UNKNOWN, "APP_KEY_UNKNOWN", "no merchant has this appKey", "never", 200),
    Code(SIGNATURE_MISMATCH, "SIGNATURE_MISMATCH", "sign is not the signature of this request", "never", 200),
    Code(
        TIMESTAMP_OUT_OF_TOLERANCE,
        "TIMESTAMP_OUT_OF_TOLERANCE",
        "timestamp is too far from the server's clock",
        "new timestamp",
        200,
    ),
    Code(NONCE_REPEATED, "NONCE_REPEATED", "this appKey has used this nonceStr already", "new nonceStr", 200),
    Code(
        SOURCE_NOT_ALLOWED,
        "SOURCE_NOT_ALLOWED",
        "the merchant may not call from this source address",
        "never",
        200,
    ),
    Code(MERCHANT_SUSPENDED, "MERCHANT_SUSPENDED", "the merchant account is suspended", "later", 200),
    Code(
        OPERATION_DISABLED,
        "OPERATION_DISABLED",
        "the operation is switched off for this merchant",
        "never",
        200,
    ),
    Code(
        DEBIT_NOT_ALLOWED,
        "DEBIT_NOT_ALLOWED",
        "the sub-user does not let the merchant debit the wallet",
        "after the sub-user acts",
        200,
    ),
    Code(SUBUSER_NOT_FOUND, "SUBUSER_NOT_FOUND", "the merchant has no such sub-user", "never", 200),
    Code(ORDER_NOT_FOUND, "ORDER_NOT_FOUND", "the merchant has no such order", "never", 200),
    Code(WALLET_NOT_FOUND, "WALLET_NOT_FOUND", "no sub-user of the merchant has this address", "never", 200),
    Code(
        ADDRESS_NOT_LISTED,
        "ADDRESS_NOT_LISTED",
        "this address is not on the merchant's allow-list",
        "never",
        200,
    ),
    Code(
        ORDER_ID_CONFLICT,
        "ORDER_ID_CONFLICT",
        "this mcOrderId was already used with other values",
        "never",
        200,
    ),
    Code(
        BALANCE_INSUFFICIENT,
        "BALANCE_INSUFFICIENT",
        "the balance is smaller than the amount",
        "after funding",
        200,
    ),
    Code(AMOUNT_WITHIN_FEE, "AMOUNT_WITHIN_FEE", "the fee would take the whole amount", "never", 200),
    Code(LIMIT_EXCEEDED, "LIMIT_EXCEEDED", "the limit that msg names would be exceeded", "later", 200),
    Code(
        EXCHANGE_UNAVAILABLE,
        "EXCHANGE_UNAVAILABLE",
        "there is no usable rate, or less than minAmountArrival would arrive",
        "later",
        200,
    ),
    Code(
        TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS", "requests come faster than allowed", "after Retry-After", 429
    ),
    Code(INTERNAL_FAULT, "INTERNAL_FAULT", "an internal error of the service", "same mcOrderId", 500),
    Code(UNAVAILABLE, "UNAVAILABLE", "the service cannot take the request right now", "same mcOrderId", 503),
)

CODES: Final[dict[int, Code]] = {row.code: row for row in _ROWS}


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """Why a request was refused.

    `payload` becomes `data` of the answer (null if None). `retry_after_s`, in whole seconds, becomes the
    header `Retry-After`. `name` tells refusals with the same code apart. `figures` are the values that were
    compared, in words, for operators. Both are not part of the answer.
    """

    code: int
    msg: str
    payload: dict[str, Any] | None = None
    retry_after_s: int | None = None
    name: str | None = None
    figures: str | None = None

    def with_figures(self, figures: str) -> "Refusal":
        """The same refusal with the values that were compared."""
        return msgspec.structs.replace(self, figures=figures)

    @property
    def http_status(self) -> int:
        """The HTTP status of the answer."""
        return CODES[self.code].http_status


class Refused(Exception):
    """Ends a request with `refusal`. Gate and field checks raise it."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code, refusal.msg)
        self.refusal = refusal


def refuse(
    code: int, msg: str, payload: dict[str, Any] | None = None, retry_after_s: int | None = None
) -> NoReturn:
    """Raise `Refused` with these values."""
    raise Refused(Refusal(code, msg, payload, retry_after_s))
