"""The bytes of an answer with an envelope."""

from collections.abc import Sequence
from typing import Final

from merchant_wallet.api.dependencies import Header
from merchant_wallet.api.wire import RESPONSE_CONTENT_TYPE

_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
_HEADS: Final = {
    status: (
        f"HTTP/1.1 {status} {reason}\r\ncache-control: no-store\r\n"
        f"content-type: {RESPONSE_CONTENT_TYPE}\r\ncontent-length: "
    ).encode()
    for status, reason in _REASONS.items()
}
"""The start of each status' head, up to the length of the body."""


def encode_response(
    status: int, body: bytes, request_id: str, date: bytes, headers: Sequence[Header], *, closes: bool
) -> bytes:
    """The bytes of an HTTP/1.1 response (RFC 9112)."""
    extra = b"".join([b"\r\n%b: %b" % header for header in headers]) if headers else b""
    if closes:
        extra += b"\r\nconnection: close"
    return b"%b%d\r\ndate: %b\r\nx-request-id: %b%b\r\n\r\n%b" % (
        _HEADS[status],
        len(body),
        date,
        request_id.encode(),
        extra,
        body,
    )
