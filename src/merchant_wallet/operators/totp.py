"""The second factor: time-based one-time passwords (RFC 6238) and recovery codes.

Rules:
- The parameters are those that every authenticator supports: SHA-1, six digits, 30 seconds.
- The codes of the step before and the step after are accepted too, because clocks differ.
- The used step is returned, so that the caller can refuse to use it twice.
"""

import base64
import hashlib
import hmac
import os
import re
import secrets
from typing import Final
from urllib.parse import quote, urlencode

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

STEP_MS: Final = 30_000
DIGITS: Final = 6
SECRET_BYTES: Final = 20
RECOVERY_CODES: Final = 10

_AROUND: Final = (-1, 0, 1)
_RECOVERY_BYTES: Final = 10
_GROUP: Final = 4


def generate_secret() -> str:
    """A new secret of 160 bits in base32 without padding, as authenticators expect it."""
    return base64.b32encode(os.urandom(SECRET_BYTES)).decode()


def make_uri(secret: str, name: str, issuer: str) -> str:
    """The `otpauth://` URI of a secret, for a QR code. Pure."""
    label = quote(f"{issuer}:{name}", safe="")
    fields = {
        "secret": secret,
        "issuer": issuer,
        "algorithm": "SHA1",
        "digits": DIGITS,
        "period": STEP_MS // 1000,
    }
    return f"otpauth://totp/{label}?{urlencode(fields, quote_via=quote)}"


def make_code(secret: str, step: int) -> str:
    """The code of a step. A step is a count of 30-second periods since the epoch. Pure."""
    totp = TOTP(base64.b32decode(secret), DIGITS, SHA1(), STEP_MS // 1000, enforce_key_length=False)
    return totp.generate(step * STEP_MS // 1000).decode()


def find_step(secret: str, code: str, at_ms: int, last_step: int) -> int | None:
    """The step of a code: later than `last_step` and at most one away from the present step. Pure.

    None if the code is wrong. Every candidate is compared in constant time.
    """
    typed = re.sub(r"[\s-]", "", code).encode("utf-8", "surrogatepass")
    found = None
    for around in _AROUND:
        step = at_ms // STEP_MS + around
        if step >= 0 and hmac.compare_digest(make_code(secret, step).encode(), typed) and step > last_step:
            found = step
    return found


def generate_recovery_codes() -> list[str]:
    """Ten new codes of 80 bits, as `abcd-efgh-ijkl-mnop`."""
    return [_spell(secrets.token_bytes(_RECOVERY_BYTES)) for _ in range(RECOVERY_CODES)]


def hash_recovery_code(operator_id: int, code: str) -> bytes:
    """The stored hash of a recovery code, in whatever case and spacing it was typed. Pure. The code is
    random, so one SHA-256 is enough.
    """
    letters = re.sub(r"[\s-]", "", code).lower()
    return hashlib.sha256(f"recovery;{operator_id};{letters}".encode("utf-8", "surrogatepass")).digest()


def _spell(raw: bytes) -> str:
    letters = base64.b32encode(raw).decode().lower()
    return "-".join(letters[at : at + _GROUP] for at in range(0, len(letters), _GROUP))
