"""What a request's head must say so that everybody on its way reads the same request (RFC 9112). Pure.

Rules:
- The version is HTTP/1.0 or HTTP/1.1.
- `Host` stands there once; HTTP/1.0 may leave it out (RFC 9112 section 3.2).
- `Transfer-Encoding` is `chunked` alone, once, and in HTTP/1.1 only: another coding would have to be undone,
  and a proxy that reads the field in another way sees another end of the request (section 6.1).

The parser itself refuses the rest: Content-Length together with Transfer-Encoding, more than one
Content-Length, continued header lines, line ends without CR, and spaces before a header's colon.
"""

from collections.abc import Sequence
from typing import Final

VERSIONS: Final = ("1.0", "1.1")
_CHUNKED: Final = b"chunked"
_SPACE: Final = b" \t"


class FramingUnclear(ValueError):
    """A head that two readers could take for two different requests."""


def check_framing(version: str, host_count: int, codings: Sequence[bytes]) -> None:
    """See that a head's framing is clear; `codings` are its Transfer-Encoding fields.

    Raises FramingUnclear.
    """
    if version not in VERSIONS:
        raise FramingUnclear(f"HTTP/{version}")
    if host_count > 1 or (host_count == 0 and version != "1.0"):
        raise FramingUnclear(f"{host_count} Host fields")
    if codings and (version == "1.0" or len(codings) > 1 or codings[0].strip(_SPACE).lower() != _CHUNKED):
        raise FramingUnclear("Transfer-Encoding")
