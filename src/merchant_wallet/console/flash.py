"""Flash messages: shown once on the next page. The browser keeps the message in a signed cookie.

Rules: a message is valid for one session and one minute. A cookie without our signature is ignored. It holds
the English text and its values; it is translated and escaped when it is shown.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

COOKIE: Final = "console_said"
PATH: Final = "/console"
KEY: Final = "console flash"
"""The purpose from which the signing key is derived."""
GOOD: Final = "good"
WARN: Final = "warn"
BAD: Final = "bad"
TONES: Final = (GOOD, WARN, BAD)
_LIFETIME_S: Final = 60
_MAC_BYTES: Final = 16
_MAX_COOKIE: Final = 3000


class FlashMessage(msgspec.Struct, frozen=True):
    """A message: its tone, the English text with placeholders, and their values."""

    tone: str
    text: str
    values: Mapping[str, object] = {}


def write(response: Response, said: FlashMessage, key: bytes, session_token: str, secure: bool) -> None:
    """Store a message in the browser for its next page."""
    body = msgspec.json.encode(said)
    packed = base64.urlsafe_b64encode(_sign(key, session_token, body) + body).decode()
    if len(packed) > _MAX_COOKIE:
        # Browsers drop a cookie over 4 kB. The page itself shows what the message would say.
        return
    response.set_cookie(
        COOKIE, packed, max_age=_LIFETIME_S, path=PATH, httponly=True, samesite="strict", secure=secure
    )


def read(request: Request, key: bytes, session_token: str) -> FlashMessage | None:
    """The message from the browser, if we signed it for this session."""
    packed = request.cookies.get(COOKIE, "")
    if not packed or len(packed) > _MAX_COOKIE:
        return None
    try:
        raw = base64.b64decode(packed, altchars=b"-_", validate=True)
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, _sign(key, session_token, body)):
            return None
        return msgspec.json.decode(body, type=FlashMessage)
    except (ValueError, msgspec.DecodeError):
        # Anybody may send a cookie. One that is not ours is ignored.
        return None


def clear(response: Response) -> None:
    """Delete the message that was shown."""
    response.delete_cookie(COOKIE, path=PATH, httponly=True, samesite="strict")


def _sign(key: bytes, session_token: str, body: bytes) -> bytes:
    return hmac.digest(key, session_token.encode() + b"\0" + body, hashlib.sha256)[:_MAC_BYTES]
