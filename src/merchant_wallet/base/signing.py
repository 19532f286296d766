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
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, Literal

Method = Literal["HMAC", "MD5"]
HMAC: Final = "HMAC"
MD5: Final = "MD5"

SIGN_LENGTH: Final = 32
_BLOCK_BYTES: Final = 64
"""The block of SHA-256, and so the length of an HMAC's key."""
_MAX_LINES: Final = 32
"""A string to sign with more fields has no stored template, so that no client can fill the memory."""
CALLBACK_PATH: Final = "callback"
EVENT_ID: Final = "eventId"
"""The field that every callback has and no request may have."""

# Unicode's category Cc: C0, DEL and C1.
_search_control = re.compile(r"[\x00-\x1f\x7f-\x9f]").search
_INNER_PAD: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER_PAD: Final = bytes(byte ^ 0x5C for byte in range(256))
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
    names = tuple(fields)
    if not 0 < len(names) <= _MAX_LINES:
        return "\n".join([path, *[f"{name}={fields[name]}" for name in sorted(names)]])
    template, pick = _make_template(names)
    lines: str = template % pick(fields)
    return path + lines


@lru_cache(maxsize=256)
def _make_template(names: tuple[str, ...]) -> tuple[str, Callable[[Mapping[str, str]], Any]]:
    """The lines of these fields with `%s` for each value, and what picks the values in the lines' order.

    An operation's requests have the same names in the same order. A template takes half the time of sorting.
    """
    ordered = sorted(names)
    return "".join([f"\n{name.replace('%', '%%')}=%s" for name in ordered]), itemgetter(*ordered)


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
    given_bytes = given.encode("ascii", "replace")
    given_bytes = given_bytes.upper() if method == MD5 else given_bytes.lower()
    signed = build_md5_string_to_sign(fields) if method == MD5 else build_string_to_sign(path, fields)
    digest_hex = _md5_hex if method == MD5 else _hmac_hex
    matched = None
    for secret in secrets:
        if hmac.compare_digest(digest_hex(secret, signed).encode(), given_bytes):
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
    inner, outer = _prepare_key(secret)
    digest, result = inner.copy(), outer.copy()
    digest.update(signed.encode())
    result.update(digest.digest())
    return result.hexdigest()[:SIGN_LENGTH]


@lru_cache(maxsize=4096)
def _prepare_key(secret: str) -> tuple["hashlib._Hash", "hashlib._Hash"]:
    """The inner and the outer hash of HMAC-SHA256 (RFC 2104 section 2) that have taken in the key.

    To prepare a key costs as much as to sign a request. Copies of two hashes take two thirds of the time of
    a copied `hmac.HMAC`, which is written in Python.
    """
    key = secret.encode()
    if len(key) > _BLOCK_BYTES:
        key = hashlib.sha256(key).digest()
    key = key.ljust(_BLOCK_BYTES, b"\0")
    return hashlib.sha256(key.translate(_INNER_PAD)), hashlib.sha256(key.translate(_OUTER_PAD))


def _md5_hex(secret: str, signed: str) -> str:
    pairs = signed + "&" if signed else ""
    digest = hashlib.md5(f"{pairs}key={secret}".encode(), usedforsecurity=False)
    return digest.hexdigest().upper()
