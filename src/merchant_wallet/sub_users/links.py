"""The token in the link that opens a sub-user's wallet page. Pure.

Rules:
- A link token is stored nowhere. It holds the user and the time of expiry, authenticated by a MAC.
- A token can be used more than once while it is valid: chat programs fetch a link before the user does.
- `sessions` checks whether a reset of the PIN has revoked the link.
"""

import base64
import hashlib
import hmac
import struct
from typing import Final, NamedTuple

LINK_KEY: Final = "wallet link"
"""The purpose from which the key of link tokens is derived."""
LINK_LIFETIME_MS: Final = 15 * 60 * 1000

_FORM: Final = 1
# Version, merchant id, user id, the time of expiry in ms.
_CONTENT: Final = struct.Struct(">BQQQ")
_MAC_BYTES: Final = 32
_TOKEN_LENGTH: Final = -(-(_CONTENT.size + _MAC_BYTES) * 4 // 3)


class Link(NamedTuple):
    """A valid link: whose wallet it opens, and when it was created."""

    merchant_id: int
    user_id: int
    made_ms: int


class LinkExpired(ValueError):
    """The link is genuine but has expired. The text is a sentence for the page."""


def make_link_token(key: bytes, merchant_id: int, user_id: int, now_ms: int) -> str:
    """The token of a wallet link that is valid for 15 minutes. Its characters need no escape in a URL."""
    content = _CONTENT.pack(_FORM, merchant_id, user_id, now_ms + LINK_LIFETIME_MS)
    return base64.urlsafe_b64encode(content + _mac(key, content)).decode().rstrip("=")


def read_link_token(key: bytes, token: str, now_ms: int) -> Link:
    """Check a token and return what it holds.

    Raises LinkExpired, or ValueError if the token was not made with this key. The text is for the page.
    """
    raw = _decode(token)
    content, mac = raw[: _CONTENT.size], raw[_CONTENT.size :]
    if not hmac.compare_digest(mac, _mac(key, content)):
        raise ValueError("This link is not valid.")
    form, merchant_id, user_id, until_ms = _CONTENT.unpack(content)
    if form != _FORM:
        raise ValueError("This link is not valid.")
    if now_ms >= until_ms:
        raise LinkExpired("This link has expired; ask for a new one.")
    return Link(merchant_id, user_id, until_ms - LINK_LIFETIME_MS)


def _decode(token: str) -> bytes:
    """The bytes of a token. Only the exact spelling of `make_link_token` is accepted."""
    try:
        raw = (
            base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)) if len(token) == _TOKEN_LENGTH else b""
        )
    except ValueError:
        raw = b""
    if len(raw) != _CONTENT.size + _MAC_BYTES or base64.urlsafe_b64encode(raw).decode().rstrip("=") != token:
        raise ValueError("This link is not valid.")
    return raw


def _mac(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, b"wallet link\0" + content, hashlib.sha256)
