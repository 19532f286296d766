"""Signatures of requests, answers and callbacks: the string to sign, and both methods.

Rules:
- A string to sign starts with the path (for a callback, the word `callback`). So a signature is valid for one
  operation only.
- Then each present field is one line `name=value`, in the byte order of the names. Values are the raw texts
  from the wire.
- A value with a control character must be refused before its signature is trusted (`find_control_character`).
  Otherwise a value could look like another line.
- Field names consist of `[A-Za-z0-9_]` (see `wire`). For these the order of str is the order of bytes.

`HMAC` is HMAC-SHA256 cut to 128 bits, the minimum of RFC 2104 section 5. `MD5` is a weak legacy method that
an operator may switch on for a merchant. It covers neither the path nor the borders between fields.

Requests, answers and callbacks are signed with the same secret, so no text may be valid as two of them:
- With HMAC the first line distinguishes a callback from the others. A request has an `appKey`, an answer has
  none.
- With MD5 the fields distinguish them: a callback has `eventId`, a request has `appKey` and no `eventId`, an
  answer has neither. A value may not hide one of these fields (`find_hidden_field`). Decision 0051.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal

Method = Literal["HMAC", "MD5"]
HMAC: Final = "HMAC"
MD5: Final = "MD5"

SIGN_LENGTH: Final = 32
CALLBACK_PATH: Final = "callback"
EVENT_ID: Final = "eventId"
"""The field that every callback has and no request may have."""

# Unicode's category Cc: C0, DEL and C1.
_search_control = re.compile(r"[\x00-\x1f\x7f-\x9f]").search
# The fields of requests and callbacks, as MD5 would read them inside a value.
_search_hidden = re.compile(r"&(?:appKey|eventId|nonceStr|timestamp)=").search


def find_control_character(fields: Mapping[str, str]) -> str | None:
    """The name of the first field whose value has a control character (C0, DEL or C1), or None."""
    # A printable text has none. Only other texts, such as those with an emoji's joiner, need the second
    # check.
    if "".join(fields.values()).isprintable():
        return None
    return next((name for name, text in fields.items() if _search_control(text)), None)


def find_hidden_field(fields: Mapping[str, str]) -> tuple[str, str] | None:
    """The first field whose value hides a field from MD5, and what it hides: `("notifyUrl", "&appKey=")`.

    None if no value does. In MD5's text, `a=1&b=2` may be two fields or one.
    """
    if "&" not in "".join(fields.values()):
        return None
    found = ((name, _search_hidden(value)) for name, value in fields.items())
    return next(((name, hidden[0]) for name, hidden in found if hidden), None)


def build_string_to_sign(path: str, fields: Mapping[str, str]) -> str:
    """What HMAC signs: `path`, then the present fields except `sign`, sorted, joined with line feeds."""
    return "\n".join([path, *[f"{name}={fields[name]}" for name in sorted(fields)]])


def build_md5_string_to_sign(fields: Mapping[str, str]) -> str:
    """What MD5 signs, without the secret at the end: the sorted fields joined with `&`."""
    return "&".join([f"{name}={fields[name]}" for name in sorted(fields)])


def sign(method: Method, secret: str, path: str, fields: Mapping[str, str]) -> str:
    """The 32-character `sign` of `fields`, which has neither `sign` nor absent fields. Interface 5.

    Lower-case hex for HMAC, upper-case hex for MD5.
    """
    if method == MD5:
        return _md5_hex(secret, build_md5_string_to_sign(fields))
    return _hmac_hex(secret, build_string_to_sign(path, fields))


def verify(
    method: Method, secrets: Sequence[str], path: str, fields: Mapping[str, str], given: str
) -> str | None:
    """The live secret with which `given` is the signature of `fields`, or None.

    Letter case is ignored. The time does not depend on where `given` is wrong or which secret matches.
    """
    given_bytes = given.encode("ascii", "replace").lower()
    signed = build_md5_string_to_sign(fields) if method == MD5 else build_string_to_sign(path, fields)
    digest_hex = _md5_hex if method == MD5 else _hmac_hex
    matched = None
    for secret in secrets:
        if hmac.compare_digest(digest_hex(secret, signed).lower().encode(), given_bytes):
            matched = secret
    return matched


def sign_response(
    method: Method,
    secret: str,
    path: str,
    fields: Mapping[str, str],
    code: int,
    nonce: str,
    length: int = SIGN_LENGTH,
) -> str:
    """`data.sign` of an answer, cut to `length` characters. `secret` is the one that signed the request.

    `fields` are the present fields of `data` as texts on the wire. HMAC also signs `code` and the request's
    nonceStr, so an answer can't be replayed to another request. The legacy MD5 signs only the fields. Raises
    ValueError for MD5 if a value hides a field: such an answer could be a signed request.
    """
    if method == MD5:
        hidden = find_hidden_field(fields)
        if hidden is not None:
            raise ValueError(f"an answer whose {hidden[0]} holds {hidden[1]} can't be signed with MD5")
        return _md5_hex(secret, build_md5_string_to_sign(fields))[:length]
    bound = {**fields, "code": str(code), "nonceStr": nonce}
    return _hmac_hex(secret, build_string_to_sign(path, bound))[:length]


def _hmac_hex(secret: str, signed: str) -> str:
    digest = _keyed(secret).copy()
    digest.update(signed.encode())
    return digest.hexdigest()[:SIGN_LENGTH]


@lru_cache(maxsize=4096)
def _keyed(secret: str) -> hmac.HMAC:
    """An HMAC with only the key set up. To set it up costs as much as to sign a request."""
    return hmac.new(secret.encode(), digestmod="sha256")


def _md5_hex(secret: str, signed: str) -> str:
    pairs = signed + "&" if signed else ""
    digest = hashlib.md5(f"{pairs}key={secret}".encode(), usedforsecurity=False)
    return digest.hexdigest().upper()
