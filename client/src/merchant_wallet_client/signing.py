"""Signatures of requests, answers and callbacks: the string to sign, and both methods. Pure.

Rules:
- The string begins with the path (for a callback, the word `callback`), so a signature is valid for one
  operation only. Then each present field is one line `name=value`, sorted by name.
- A value is its text on the wire. A JSON number is the text that was sent, never a number printed again.
- `MD5` is the weak legacy method. Its text has neither the path nor clear borders between fields.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final, Literal

Method = Literal["HMAC", "MD5"]
HMAC: Final = "HMAC"
MD5: Final = "MD5"
CALLBACK_PATH: Final = "callback"
SIGN_LENGTH: Final = 32

search_control = re.compile(r"[\x00-\x1f\x7f-\x9f]").search
"""Control characters (C0, DEL and C1). With one of them a value could look like another line."""
search_hidden = re.compile(r"&(?:appKey|eventId|nonceStr|timestamp)=").search
"""A text that MD5 would read as another field."""


NEVER_IN_ANSWERS: Final = ("appKey", "eventId", "nonceStr", "timestamp")
"""A body with one of these is a request or a callback, never an answer. MD5 can't tell them apart."""


def list_signed(fields: Mapping[str, object]) -> dict[str, str]:
    """The texts that are signed: of every field that is present, except `sign`."""
    return {
        name: str(value)
        for name, value in fields.items()
        if name != "sign" and value is not None and value != ""
    }


def build_string_to_sign(method: Method, path: str, fields: Mapping[str, object]) -> str:
    """The text that is signed. With MD5 it is without the secret at its end."""
    texts = list_signed(fields)
    pairs = [f"{name}={texts[name]}" for name in sorted(texts)]
    return "&".join(pairs) if method == MD5 else "\n".join([path, *pairs])


def sign(method: Method, secret: str, path: str, fields: Mapping[str, object]) -> str:
    """The 32 characters of `sign`: small hexadecimal letters for HMAC, capitals for MD5."""
    text = build_string_to_sign(method, path, fields)
    if method == MD5:
        keyed = f"{text}&key={secret}" if text else f"key={secret}"
        return hashlib.md5(keyed.encode(), usedforsecurity=False).hexdigest().upper()
    return hmac.digest(secret.encode(), text.encode(), hashlib.sha256).hex()[:SIGN_LENGTH]


def is_signed(given: object, method: Method, secret: str, path: str, fields: Mapping[str, object]) -> bool:
    """Whether `given` is the whole signature of these fields. It takes the same time wherever it differs."""
    return _is_same(given, method, secret, path, fields, SIGN_LENGTH)


def is_answer_signed(
    data: Mapping[str, object], method: Method, secret: str, path: str, *, code: int, nonce: str, length: int
) -> bool:
    """Whether `data.sign` was made with our secret for this answer to the request with this nonce.

    HMAC signs `code` and the request's nonceStr too. The legacy MD5 signs the fields of `data` alone.
    """
    bound = data if method == MD5 else {**data, "code": code, "nonceStr": nonce}
    return _is_same(data.get("sign"), method, secret, path, bound, length)


def _is_same(
    given: object, method: Method, secret: str, path: str, fields: Mapping[str, object], length: int
) -> bool:
    if not isinstance(given, str):
        return False
    try:
        expected = sign(method, secret, path, fields)[:length]
        return hmac.compare_digest(expected.encode(), given.encode())
    except UnicodeEncodeError:
        # Half of a surrogate pair: it has no bytes, so nobody has signed it.
        return False
