"""An example of each refusal: its code and a sentence that the service says with it.

A test provokes every code and compares.
"""

from typing import Any, Final

from merchant_wallet.api.endpoint import BUSY, FAULT, ONLY_POST
from merchant_wallet.api.gate import unknown_app_key
from merchant_wallet.base.codes import (
    ADDRESS_UNUSABLE,
    AMOUNT_OUT_OF_RANGE,
    BODY_MALFORMED,
    BODY_TOO_LARGE,
    CHAIN_UNSUPPORTED,
    CURRENCY_UNSUPPORTED,
    FIELD_INVALID,
    MEDIA_TYPE_UNSUPPORTED,
    MERCHANT_SUSPENDED,
    NOTIFY_URL_UNACCEPTABLE,
    OPERATION_DISABLED,
    PATH_UNKNOWN,
    SIGNATURE_MISMATCH,
    SOURCE_NOT_ALLOWED,
    TIMESTAMP_OUT_OF_TOLERANCE,
    TOO_MANY_REQUESTS,
    Refusal,
)
from merchant_wallet.book import outcomes

_ALL: Final = (
    Refusal(PATH_UNKNOWN, "there is nothing at this path"),
    ONLY_POST,
    Refusal(BODY_TOO_LARGE, "the body must have at most 16384 bytes"),
    Refusal(
        MEDIA_TYPE_UNSUPPORTED,
        "Content-Type must be application/json or application/x-www-form-urlencoded, in UTF-8",
    ),
    Refusal(BODY_MALFORMED, "the body must be a JSON object"),
    Refusal(FIELD_INVALID, "amount is required"),
    Refusal(AMOUNT_OUT_OF_RANGE, "amount must have at most 2 decimals"),
    Refusal(CURRENCY_UNSUPPORTED, "currency must be USDT"),
    Refusal(CHAIN_UNSUPPORTED, "chainType must be ERC20 or TRC20"),
    Refusal(
        ADDRESS_UNUSABLE,
        "address is not valid on TRC20: a TRON address is 34 base58 characters that begin with T",
    ),
    Refusal(NOTIFY_URL_UNACCEPTABLE, "notifyUrl must begin with https:// or http://"),
    unknown_app_key(),
    Refusal(
        SIGNATURE_MISMATCH,
        "sign does not match the request",
        {
            "stringToSign": "/merchant/getMerchantBalance\nappKey=demo\nnonceStr=ed360b81bd90bac6\n"
            "timestamp=1763712009000"
        },
    ),
    Refusal(
        TIMESTAMP_OUT_OF_TOLERANCE,
        "timestamp must be within 300 s of the server's clock",
        {"serverTime": 1_763_712_008_000, "skewMs": -600_000},
    ),
    outcomes.NONCE_USED,
    Refusal(SOURCE_NOT_ALLOWED, "requests of this merchant are not accepted from this source address"),
    Refusal(MERCHANT_SUSPENDED, "this merchant is suspended"),
    Refusal(OPERATION_DISABLED, "exchange is disabled for this merchant"),
    outcomes.DEBITS_PAUSED,
    outcomes.SUB_USER_UNKNOWN,
    outcomes.ORDER_UNKNOWN,
    outcomes.ADDRESS_UNKNOWN,
    outcomes.ADDRESS_NOT_ALLOWED,
    outcomes.ORDER_ID_TAKEN,
    outcomes.INSUFFICIENT,
    outcomes.NOT_ABOVE_FEE,
    outcomes.POSITION_LIMIT,
    outcomes.RATE_PAUSED,
    Refusal(TOO_MANY_REQUESTS, "more than 200 requests a second"),
    FAULT,
    BUSY,
)

REFUSALS: Final[dict[int, Refusal]] = {refusal.code: refusal for refusal in _ALL}


def show_refusal(code: int) -> dict[str, Any]:
    """The envelope of a code's example."""
    refusal = REFUSALS[code]
    return {"code": refusal.code, "msg": refusal.msg, "data": refusal.payload}
