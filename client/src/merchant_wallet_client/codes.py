"""The codes of the interface: name, meaning, when to ask again, and what to do next. Pure.

Rules: a code never changes its meaning. The first digits of a code that this table does not have say what it
is (`find_retry`). Unless they say that it was refused, the outcome is unknown.
"""

from enum import Enum
from typing import Final, NamedTuple

SUCCESS: Final = 200


class Retry(Enum):
    """When the same request can succeed. The values are the words of the interface's own table."""

    NO_RETRY = "no retry"
    NEVER = "never"
    LATER = "later"
    NEW_TIMESTAMP = "new timestamp"
    NEW_NONCE = "new nonceStr"
    AFTER_SUB_USER = "after the sub-user acts"
    AFTER_FUNDING = "after funding"
    AFTER_RETRY_AFTER = "after Retry-After"
    SAME_ORDER_ID = "same mcOrderId"


class Code(NamedTuple):
    """A row of the table. `advice` says what to do next."""

    code: int
    name: str
    meaning: str
    retry: Retry
    http_status: int
    advice: str


_NEVER, _LATER = Retry.NEVER, Retry.LATER
_ROWS: Final = (
    Code(200, "SUCCESS", "the operation was carried out", Retry.NO_RETRY, 200, "Nothing is left to do."),
    Code(
        404,
        "PATH_UNKNOWN",
        "no operation has this path",
        _NEVER,
        404,
        "Check the name of the operation, and that the base URL has no path of its own.",
    ),
    Code(405, "METHOD_NOT_ALLOWED", "this path accepts only POST", _NEVER, 405, "Send it with POST."),
    Code(
        413,
        "BODY_TOO_LARGE",
        "the request body is longer than 16 KiB",
        _NEVER,
        413,
        "Send the fields of the operation alone.",
    ),
    Code(
        415,
        "MEDIA_TYPE_UNSUPPORTED",
        "the body is neither JSON nor a form",
        _NEVER,
        415,
        "Set Content-Type to application/json.",
    ),
    Code(
        40000,
        "BODY_MALFORMED",
        "the body cannot be read as one object of fields",
        _NEVER,
        200,
        "Send one flat JSON object in UTF-8 that names each field once.",
    ),
    Code(
        40001,
        "FIELD_INVALID",
        "a field is absent, too long or of the wrong form",
        _NEVER,
        200,
        "msg names the field and the rule: correct it.",
    ),
    Code(
        40002,
        "AMOUNT_OUT_OF_RANGE",
        "an amount has too many decimals or is out of range",
        _NEVER,
        200,
        "Transfers take 6 decimals, all else takes 2; at least 0.01 and at most 100000000 there.",
    ),
    Code(
        40003,
        "CURRENCY_UNSUPPORTED",
        "this operation does not take that currency",
        _NEVER,
        200,
        "Withdraw USDT; transfer KFB (USDT if the account has only USDT).",
    ),
    Code(
        40004,
        "CHAIN_UNSUPPORTED",
        "this chain is not enabled (by default ERC20 and TRC20 are)",
        _NEVER,
        200,
        "msg lists the chains that are enabled. Ask the operator for another one.",
    ),
    Code(
        40005,
        "ADDRESS_UNUSABLE",
        "money sent to this address would be lost",
        _NEVER,
        200,
        "Ask the recipient for the address again, and check that it belongs to chainType.",
    ),
    Code(
        40006,
        "NOTIFY_URL_UNACCEPTABLE",
        "callbacks cannot go to this notifyUrl",
        _NEVER,
        200,
        "Use https:// and a host with a public address (http:// in a sandbox), without user info.",
    ),
    Code(
        40100,
        "APP_KEY_UNKNOWN",
        "no merchant has this appKey",
        _NEVER,
        200,
        "Check the appKey and the base URL: a sandbox takes no mk_live_ key, and a live service no mk_test_.",
    ),
    Code(
        40101,
        "SIGNATURE_MISMATCH",
        "sign is not the signature of this request",
        _NEVER,
        200,
        "Check the secret and the method. A sandbox sends the string that it signed: compare it with yours.",
    ),
    Code(
        40102,
        "TIMESTAMP_OUT_OF_TOLERANCE",
        "timestamp is too far from the server's clock",
        Retry.NEW_TIMESTAMP,
        200,
        "Set this machine's clock (NTP): skewMs says how wrong it is.",
    ),
    Code(
        40103,
        "NONCE_REPEATED",
        "this appKey has used this nonceStr already",
        Retry.NEW_NONCE,
        200,
        "Make a new nonceStr of 16 random bytes for each request, also for a repeat.",
    ),
    Code(
        40104,
        "SOURCE_NOT_ALLOWED",
        "the merchant may not call from this source address",
        _NEVER,
        200,
        "Call from a listed network, or ask the operator to list this one.",
    ),
    Code(
        40300, "MERCHANT_SUSPENDED", "the merchant account is suspended", _LATER, 200, "Ask the operator why."
    ),
    Code(
        40301,
        "OPERATION_DISABLED",
        "the operation is switched off for this merchant",
        _NEVER,
        200,
        "Ask the operator to switch it on.",
    ),
    Code(
        40302,
        "DEBIT_NOT_ALLOWED",
        "the sub-user does not let the merchant debit the wallet",
        Retry.AFTER_SUB_USER,
        200,
        "Lead the user to the wallet page (url of getMerchantCustomer): there it can be changed.",
    ),
    Code(
        40400,
        "SUBUSER_NOT_FOUND",
        "the merchant has no such sub-user",
        _NEVER,
        200,
        "Look the user up with getMerchantCustomer first.",
    ),
    Code(
        40401,
        "ORDER_NOT_FOUND",
        "the merchant has no such order",
        _NEVER,
        200,
        "The message names the field: an id or hash must be of your own account, as the service answered it. "
        "queryOrder needs orderId and mcOrderId of the same order.",
    ),
    Code(
        40402,
        "WALLET_NOT_FOUND",
        "no sub-user of the merchant has this address",
        _NEVER,
        200,
        "Use address or tronAddress of getMerchantCustomer.",
    ),
    Code(
        40403,
        "ADDRESS_NOT_LISTED",
        "this address is not on the merchant's allow-list",
        _NEVER,
        200,
        "Ask the operator to list the address.",
    ),
    Code(
        40900,
        "ORDER_ID_CONFLICT",
        "this mcOrderId was already used with other values",
        _NEVER,
        200,
        "Repeat an order with the same values, or give a new order an id of its own.",
    ),
    Code(
        42200,
        "BALANCE_INSUFFICIENT",
        "the balance is smaller than the amount",
        Retry.AFTER_FUNDING,
        200,
        "Send the same mcOrderId again when there is money: a refused order does not use its id.",
    ),
    Code(
        42201,
        "AMOUNT_WITHIN_FEE",
        "the fee would take the whole amount",
        _NEVER,
        200,
        "Send more. getWithdrawFee says what a withdrawal costs.",
    ),
    Code(
        42202,
        "LIMIT_EXCEEDED",
        "the limit that msg names would be exceeded",
        _LATER,
        200,
        "Wait until the limit's UTC day ends, or have the limit changed by whoever set it.",
    ),
    Code(
        42203,
        "EXCHANGE_UNAVAILABLE",
        "there is no usable rate, or less than minAmountArrival would arrive",
        _LATER,
        200,
        "Try again later, or lower minAmountArrival.",
    ),
    Code(
        42900,
        "TOO_MANY_REQUESTS",
        "requests come faster than allowed",
        Retry.AFTER_RETRY_AFTER,
        429,
        "Wait as long as Retry-After says, then send the same mcOrderId again.",
    ),
    Code(
        50000,
        "INTERNAL_FAULT",
        "an internal error of the service",
        Retry.SAME_ORDER_ID,
        500,
        "It is not known whether it was done. Send the same mcOrderId again until the answer is definite.",
    ),
    Code(
        50300,
        "UNAVAILABLE",
        "the service cannot take the request right now",
        Retry.SAME_ORDER_ID,
        503,
        "Wait as long as Retry-After says, then send the same mcOrderId again.",
    ),
)
CODES: Final[dict[int, Code]] = {row.code: row for row in _ROWS}
_KINDS: Final = {
    400: Retry.NEVER,
    401: Retry.NEVER,
    403: Retry.NEVER,
    404: Retry.NEVER,
    409: Retry.NEVER,
    422: Retry.LATER,
    429: Retry.AFTER_RETRY_AFTER,
}


def find_retry(code: int, http_status: int = 200) -> Retry:
    """When the same request can succeed. A newer code goes by the HTTP status, then by its digits."""
    if code in CODES:
        return CODES[code].retry
    if http_status >= CODES[50000].http_status:
        return Retry.SAME_ORDER_ID
    if http_status == CODES[42900].http_status:
        return Retry.AFTER_RETRY_AFTER
    return _KINDS.get(code // 100, Retry.SAME_ORDER_ID)
