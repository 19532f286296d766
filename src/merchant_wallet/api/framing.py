"""Checks of a request's head, so that every server on its way reads the same request (RFC 9112). Pure.

Rules:
- The version is HTTP/1.0 or HTTP/1.1.
- There is one `Host`. HTTP/1.0 may leave it out (RFC 9112 section 3.2).
- `Transfer-Encoding` may only be `chunked`, once, and only in HTTP/1.1. The service decodes no other coding,
  and a proxy that reads the field differently finds another end of the request (section 6.1).

The parser refuses the rest: Content-Length together with Transfer-Encoding, more than one Content-Length,
folded header lines, line ends without CR, and spaces before a header's colon.
"""

from collections.abc import Sequence
from typing import Final

VERSIONS: Final = ("1.0", "1.1")
_CHUNKED: Final = b"chunked"
_SPACE: Final = b" \t"


class FramingUnclear(ValueError):
    """A head that two readers could take for two different requests."""


def check_framing(version: str, host_count: int, codings: Sequence[bytes]) -> None:
    """Check that a head's framing is clear. `codings` are its Transfer-Encoding fields.

    Raises FramingUnclear.
    """
    if version not in VERSIONS:
        raise FramingUnclear(f"HTTP/{version}")
    if host_count > 1 or (host_count == 0 and version != "1.0"):
        raise FramingUnclear(f"{host_count} Host fields")
    if codings and (version == "1.0" or len(codings) > 1 or codings[0].strip(_SPACE).lower() != _CHUNKED):
        raise FramingUnclear("Transfer-Encoding")
