"""The codes of docs/integrating.md with the names of their constants, typed a second time."""

from typing import Any, Final

_ROWS: Final = (
    (200, "SUCCESS", "no retry", 200),
    (404, "PATH_UNKNOWN", "never", 404),
    (405, "METHOD_NOT_ALLOWED", "never", 405),
    (413, "BODY_TOO_LARGE", "never", 413),
    (415, "MEDIA_TYPE_UNSUPPORTED", "never", 415),
    (40000, "BODY_MALFORMED", "never", 200),
    (40001, "FIELD_INVALID", "never", 200),
    (40002, "AMOUNT_OUT_OF_RANGE", "never", 200),
    (40003, "CURRENCY_UNSUPPORTED", "never", 200),
    (40004, "CHAIN_UNSUPPORTED", "never", 200),
    (40005, "ADDRESS_UNUSABLE", "never", 200),
    (40006, "NOTIFY_URL_UNACCEPTABLE", "never", 200),
    (40100, "APP_KEY_UNKNOWN", "never", 200),
    (40101, "SIGNATURE_MISMATCH", "never", 200),
    (40102, "TIMESTAMP_OUT_OF_TOLERANCE", "new timestamp", 200),
    (40103, "NONCE_REPEATED", "new nonceStr", 200),
    (40104, "SOURCE_NOT_ALLOWED", "never", 200),
    (40300, "MERCHANT_SUSPENDED", "later", 200),
    (40301, "OPERATION_DISABLED", "never", 200),
    (40302, "DEBIT_NOT_ALLOWED", "after the sub-user acts", 200),
    (40400, "SUBUSER_NOT_FOUND", "never", 200),
    (40401, "ORDER_NOT_FOUND", "never", 200),
    (40402, "WALLET_NOT_FOUND", "never", 200),
    (40403, "ADDRESS_NOT_LISTED", "never", 200),
    (40900, "ORDER_ID_CONFLICT", "never", 200),
    (42200, "BALANCE_INSUFFICIENT", "after funding", 200),
    (42201, "AMOUNT_WITHIN_FEE", "never", 200),
    (42202, "LIMIT_EXCEEDED", "later", 200),
    (42203, "EXCHANGE_UNAVAILABLE", "later", 200),
    (42900, "TOO_MANY_REQUESTS", "after Retry-After", 429),
    (50000, "INTERNAL_FAULT", "same mcOrderId", 500),
    (50300, "UNAVAILABLE", "same mcOrderId", 503),
)


def list_codes() -> list[dict[str, Any]]:
    """The rows of `codes.json`."""
    return [dict(zip(("code", "name", "retry", "httpStatus"), row, strict=True)) for row in _ROWS]
