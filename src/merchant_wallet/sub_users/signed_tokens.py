"""Tokens in links that hold what they are about, authenticated by a MAC. Pure.

Rules: a token is stored nowhere. A token of one purpose is never valid for another. Only the exact spelling
that `sign` gives is accepted.
"""

import base64
import hashlib
import hmac
from typing import Final

NOT_VALID: Final = "This link is not valid."
_MAC_BYTES: Final = 32


def sign(key: bytes, purpose: str, content: bytes) -> str:
    """The token that holds `content`. Its characters need no escape in a URL."""
    return _encode(content + _mac(key, purpose, content))


def check(key: bytes, purpose: str, token: str, content_bytes: int) -> bytes:
    """What a token holds. Raises ValueError if it was not made with this key for this purpose."""
    raw = _decode(token, content_bytes + _MAC_BYTES)
    content, mac = raw[:content_bytes], raw[content_bytes:]
    if not hmac.compare_digest(mac, _mac(key, purpose, content)):
        raise ValueError(NOT_VALID)
    return content


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decode(token: str, size: int) -> bytes:
    length = -(-size * 4 // 3)
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)) if len(token) == length else b""
    except ValueError:
        raw = b""
    if len(raw) != size or _encode(raw) != token:
        raise ValueError(NOT_VALID)
    return raw


def _mac(key: bytes, purpose: str, content: bytes) -> bytes:
    return hmac.digest(key, purpose.encode() + b"\0" + content, hashlib.sha256)
