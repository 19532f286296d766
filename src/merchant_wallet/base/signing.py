"""Signatures of requests, answers and callbacks: the string that is signed, and both methods.

Rules: a string to sign starts with the path (the word `callback` for a callback), so that a signature is good
for one operation only; then comes one line `name=value` per present field, in the byte order of the names.
Values are the raw texts that were on the wire. A value with a control character must be refused before its
signature is believed (`find_control_character`): that is what keeps one value from posing as a further line.
Field names are of `[A-Za-z0-9_]` (see `wire`), where the order of str is the order of bytes.

`HMAC` is HMAC-SHA256 cut to 128 bits, the least that RFC 2104 section 5 allows for it. `MD5` is a legacy
method that an operator may switch on for a merchant: it binds neither path nor field borders and is weak.

Requests, answers and callbacks are signed with the same secret, so no text may be two of them:
- With HMAC the first line tells a callback from the others. A request has an `appKey`, an answer has none.
- With MD5 the fields tell them apart: a callback has `eventId`, a request has `appKey` and no `eventId`, an
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

# The category Cc of Unicode: C0, DEL and C1.
_search_control = re.compile(r"[\x00-\x1f\x7f-\x9f]").search
# What marks a request or a callback, where MD5 would read it as a field of its own.
_search_hidden = re.compile(r"&(?:appKey|eventId|nonceStr|timestamp)=").search


def find_control_character(fields: Mapping[str, str]) -> str | None:
    """The name of the first field whose value holds a control character (C0, DEL or C1), or None."""
    # A printable text holds none; only what is not printable, such as an emoji's joiner, costs the second
    # look.
    if "".join(fields.values()).isprintable():
        return None
    return next((name for name, text in fields.items() if _search_control(text)), None)


def find_hidden_field(fields: Mapping[str, str]) -> tuple[str, str] | None:
    """The first field whose value hides a field from MD5, and what it hides: `("notifyUrl", "&appKey=")`.

    None when no value does. MD5 signs the same text whether `b` is a field or a part of `a=1&b=2`.
    """
    if "&" not in "".join(fields.values()):
        return None
    found = ((name, _search_hidden(value)) for name, value in fields.items())
    return next(((name, hidden[0]) for name, hidden in found if hidden), None)


def string_to_sign(path: str, fields: Mapping[str, str]) -> str:
    """What HMAC signs: `path`, then the present fields but `sign`, sorted, joined with line feeds."""
    return "\n".join([path, *[f"{name}={fields[name]}" for name in sorted(fields)]])


def md5_string_to_sign(fields: Mapping[str, str]) -> str:
    """What MD5 signs, short of the secret that is appended to it: the sorted fields joined with `&`."""
    return "&".join([f"{name}={fields[name]}" for name in sorted(fields)])


def sign(method: Method, secret: str, path: str, fields: Mapping[str, str]) -> str:
    """The 32-character `sign` over `fields`, which hold neither `sign` nor absent ones. Interface 5.

    Lower-case hex for HMAC, upper-case hex for MD5.
    """
    if method == MD5:
        return _md5_hex(secret, md5_string_to_sign(fields))
    return _hmac_hex(secret, string_to_sign(path, fields))


def verify(
    method: Method, secrets: Sequence[str], path: str, fields: Mapping[str, str], given: str
) -> str | None:
    """The one of the live `secrets` that makes `given` the signature of `fields`, or None.

    Letter case is ignored. Takes the same time wherever `given` is wrong and whichever secret matches.
    """
    given_bytes = given.encode("ascii", "replace").lower()
    signed = md5_string_to_sign(fields) if method == MD5 else string_to_sign(path, fields)
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
    """`data.sign` of an answer, cut to `length` characters; `secret` is the one that signed the request.

    `fields` are the present fields of `data` as the texts on the wire. HMAC signs `code` and the request's
    nonceStr with them, so that an answer cannot be replayed to another request; the legacy MD5 signs the
    fields alone. Raises ValueError for MD5 when a value hides a field: the answer would sign a request.
    """
    if method == MD5:
        hidden = find_hidden_field(fields)
        if hidden is not None:
            raise ValueError(f"an answer whose {hidden[0]} holds {hidden[1]} can't be signed with MD5")
        return _md5_hex(secret, md5_string_to_sign(fields))[:length]
    bound = {**fields, "code": str(code), "nonceStr": nonce}
    return _hmac_hex(secret, string_to_sign(path, bound))[:length]


def _hmac_hex(secret: str, signed: str) -> str:
    digest = _keyed(secret).copy()
    digest.update(signed.encode())
    return digest.hexdigest()[:SIGN_LENGTH]


@lru_cache(maxsize=4096)
def _keyed(secret: str) -> hmac.HMAC:
    """A digest that has taken in the key alone; to set one up costs as much as to sign a request."""
    return hmac.new(secret.encode(), digestmod="sha256")


def _md5_hex(secret: str, signed: str) -> str:
    pairs = signed + "&" if signed else ""
    digest = hashlib.md5(f"{pairs}key={secret}".encode(), usedforsecurity=False)
    return digest.hexdigest().upper()
