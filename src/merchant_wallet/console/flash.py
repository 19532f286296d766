"""What is told once, after the browser went on to another page: kept by the browser itself, signed.

Rules: the note is good for one session and one minute; what does not bear our signature is not there. It
holds the English text and what fills it, and is translated and escaped where it is shown.
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
"""What the key that signs notes is derived under."""
GOOD: Final = "good"
WARN: Final = "warn"
BAD: Final = "bad"
TONES: Final = (GOOD, WARN, BAD)
_LIFETIME_S: Final = 60
_MAC_BYTES: Final = 16
_MAX_COOKIE: Final = 3000


class FlashMessage(msgspec.Struct, frozen=True):
    """One note: its tone, the English text with placeholders, what fills them."""

    tone: str
    text: str
    values: Mapping[str, object] = {}


def write(response: Response, said: FlashMessage, key: bytes, session_token: str, secure: bool) -> None:
    """Have the browser bring a note along to its next page."""
    body = msgspec.json.encode(said)
    packed = base64.urlsafe_b64encode(_sign(key, session_token, body) + body).decode()
    if len(packed) > _MAX_COOKIE:
        # A browser drops a cookie of more than 4 kB; what a note tells is to be seen on the page as well.
        return
    response.set_cookie(
        COOKIE, packed, max_age=_LIFETIME_S, path=PATH, httponly=True, samesite="strict", secure=secure
    )


def read(request: Request, key: bytes, session_token: str) -> FlashMessage | None:
    """The note that the browser brings along, if it is one of ours for this session."""
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
        # Anybody may send a cookie: what is none of ours says nothing.
        return None


def clear(response: Response) -> None:
    """Have the browser forget the note that was told."""
    response.delete_cookie(COOKIE, path=PATH, httponly=True, samesite="strict")


def _sign(key: bytes, session_token: str, body: bytes) -> bytes:
    return hmac.digest(key, session_token.encode() + b"\0" + body, hashlib.sha256)[:_MAC_BYTES]
