"""Signatures of Standard Webhooks 1.0 (https://www.standardwebhooks.com). Pure.

Rules:
- The key is Base64. With the prefix `whsec_`, as other software writes it, it means the same.
- What is signed is `id.timestamp.body`, with HMAC-SHA256. A header may hold several signatures, separated by
  spaces. One that matches is enough.
- A signature is compared in constant time. A message older or newer than the tolerance is not authentic.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Mapping
from typing import Final

PREFIX: Final = "whsec_"
ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"
MIN_KEY_BYTES: Final = 24
MAX_KEY_BYTES: Final = 64
TOLERANCE_S: Final = 300
_MAX_SIGNATURES: Final = 8
_is_timestamp = re.compile(r"[0-9]{1,12}").fullmatch


class NotAuthentic(Exception):
    """A message is not from whom it claims to be. The text says how that shows."""


def parse_secret(text: str) -> str:
    """The Base64 of a secret of 24 to 64 bytes, without the prefix. Raises ValueError, without the secret."""
    encoded = text.strip().removeprefix(PREFIX)
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not Base64") from None
    if not MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES:
        raise ValueError(f"not {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes")
    return encoded


def sign_webhook(secret: str, event_id: str, at_s: int, body: bytes) -> bytes:
    """The `webhook-signature` of a message, with the Base64-decoded secret as key. Raises ValueError."""
    key = base64.b64decode(secret, validate=True)
    digest = hmac.digest(key, b"%s.%d.%s" % (event_id.encode(), at_s, body), "sha256")
    return b"v1," + base64.b64encode(digest)


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes, *, event_id: str, at_s: int) -> None:
    """Check that a message is authentic and is about `event_id`. Names of headers are in lower case.

    Raises NotAuthentic.
    """
    if headers.get(ID) != event_id:
        raise NotAuthentic(f"its {ID} is not that of the request")
    timestamp = headers.get(TIMESTAMP, "")
    if not _is_timestamp(timestamp):
        raise NotAuthentic(f"it has no {TIMESTAMP}")
    if abs(int(timestamp) - at_s) > TOLERANCE_S:
        raise NotAuthentic(f"its {TIMESTAMP} is more than {TOLERANCE_S} s away from this clock")
    right = sign_webhook(secret, event_id, int(timestamp), body)
    given = headers.get(SIGNATURE, "").split(" ")[:_MAX_SIGNATURES]
    if not any(hmac.compare_digest(right, one.encode("ascii", "replace")) for one in given):
        raise NotAuthentic(f"its {SIGNATURE} is wrong or missing")
