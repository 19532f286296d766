"""That a form comes from our own page: a token bound to the session, and the browser's word on the origin.

Rules: both must hold. The token is a mac of the session's token, so nothing is kept; a browser that says
`Sec-Fetch-Site: cross-site` or another `Origin` is refused even with a token. Pages are compressed, so each
of them spells the token in another way: one whose length could be watched would be guessed piece by piece.
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
    """A change was asked for by something else than our own page."""


def make_token(key: bytes, session_token: str) -> str:
    """The token that the forms of one session carry."""
    return hmac.digest(key, b"csrf\0" + session_token.encode(), hashlib.sha256).hex()[:_LENGTH]


def mask(token: str) -> str:
    """One of the many spellings of a token: a fresh pad, then the token under it. Empty stays empty."""
    pad = secrets.token_bytes(len(token) // 2)
    return (pad + _cover(bytes.fromhex(token), pad)).hex()


def _unmask(given: str) -> str:
    """The token of a spelling; anything else comes out as a text that is no token."""
    try:
        raw = bytes.fromhex(given) if len(given) == 2 * _LENGTH else b""
    except ValueError:
        raw = b""
    half = len(raw) // 2
    return _cover(raw[half:], raw[:half]).hex()


def _cover(text: bytes, pad: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(text, pad, strict=True))


def check(request: Request, form: Form | None, expected: str) -> None:
    """See that our own page asked for a change; `expected` is what `make_token` gives. Raises Forged."""
    check_origin(request)
    given = request.headers.get(HEADER) or (form.raw(FIELD) if form is not None else "")
    if not expected or not hmac.compare_digest(_unmask(given), expected):
        raise Forged("the form's token is not this session's")


def check_origin(request: Request) -> None:
    """See that the browser does not name another site as the one that asks. Raises Forged."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Forged("another site asked for the change")
    origin = request.headers.get("origin")
    # A page that sends no referrer has a browser write "null" for its own origin as well.
    if origin and origin != "null" and origin.partition("://")[2] != request.headers.get("host", ""):
        raise Forged("another origin asked for the change")
