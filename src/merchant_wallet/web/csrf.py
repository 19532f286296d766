"""CSRF protection: a token bound to the session, and the browser's headers about the origin.

Rules: both must be right. The token is a MAC of the session's token, so nothing is stored. A request with
`Sec-Fetch-Site: cross-site` or another `Origin` is refused even with a token. Pages are compressed, so each
of them has the token in another masked form: otherwise it could be guessed from the length of responses
(BREACH).
"""

import hashlib
import hmac
import secrets
from typing import Final

from starlette.requests import Request

from merchant_wallet.web.forms import Form

FIELD: Final = "csrf"
HEADER: Final = "x-csrf-token"
_LENGTH: Final = 32


class Forged(Exception):
    """A change was requested by something other than our own page."""


class WrongToken(Forged):
    """The form is not of this session: it is from an earlier one, or from another browser."""


def make_token(key: bytes, session_token: str) -> str:
    """The CSRF token of a session's forms."""
    return hmac.digest(key, b"csrf\0" + session_token.encode(), hashlib.sha256).hex()[:_LENGTH]


def mask(token: str) -> str:
    """A masked form of a token: a random pad, then the token XORed with it. Empty stays empty."""
    pad = secrets.token_bytes(len(token) // 2)
    return (pad + _cover(bytes.fromhex(token), pad)).hex()


def _unmask(given: str) -> str:
    """The token of a masked form. Any other text gives a text that is not a token."""
    try:
        raw = bytes.fromhex(given) if len(given) == 2 * _LENGTH else b""
    except ValueError:
        raw = b""
    half = len(raw) // 2
    return _cover(raw[half:], raw[:half]).hex()


def _cover(text: bytes, pad: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(text, pad, strict=True))


def check(request: Request, form: Form | None, expected: str) -> None:
    """Check that our own page requested a change. `expected` is the result of `make_token`. Raises Forged."""
    check_origin(request)
    given = request.headers.get(HEADER) or (form.raw(FIELD) if form is not None else "")
    if not expected or not hmac.compare_digest(_unmask(given), expected):
        raise WrongToken("the form's token is not this session's")


def check_origin(request: Request) -> None:
    """Check that the `Origin` header does not name another site. Raises Forged."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Forged("another site asked for the change")
    origin = request.headers.get("origin")
    # A page without a referrer policy makes browsers send "null" for their own origin too.
    host = request.headers.get("host", "")
    if origin and origin != "null" and origin.partition("://")[2] != host:
        raise Forged(f"Origin is {origin}, and Host is {host}")
