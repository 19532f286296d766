"""Explains a wrong signature: tries the usual mistakes with the merchant's secrets. Pure.

Rules: the result says which mistake fits, never what was computed. Comparisons take constant time.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterator, Sequence

from merchant_wallet.api.debugger.findings import Finding
from merchant_wallet.base.signing import (
    HMAC,
    MD5,
    SIGN_LENGTH,
    Method,
    build_md5_string_to_sign,
    build_string_to_sign,
    sign,
)

Try = tuple[Finding, str]
"""A finding, and the full signature that it explains."""


def try_secrets(
    path: str,
    texts: dict[str, str],
    method: Method,
    given: str,
    secrets: Sequence[str],
    their_text: str | None,
) -> Finding:
    """How a signature was made. `secrets` are the live ones, newest first."""
    for number, secret in enumerate(secrets):
        if _fits(sign(method, secret, path, texts), given):
            return Finding("matches-older" if number else "matches")
    for secret in secrets:
        for finding, made in _mistakes(path, texts, method, secret, their_text):
            if _fits(made, given):
                return finding
    return Finding("no-match")


def _fits(made: str, given: str) -> bool:
    # Not shortening the digest is a mistake of its own, so both lengths count as the same way.
    return any(
        hmac.compare_digest(part.lower().encode(), given.encode("utf-8", "replace").lower())
        for part in {made, made[:SIGN_LENGTH]}
    )


def _mistakes(
    path: str, texts: dict[str, str], method: Method, secret: str, their_text: str | None
) -> Iterator[Try]:
    other: Method = HMAC if method == MD5 else MD5
    yield Finding("other-method", {"used": other, "method": method}), sign(other, secret, path, texts)
    if their_text is not None:
        made = _hmac(secret, their_text)[:SIGN_LENGTH] if method == HMAC else _md5(their_text, secret)
        yield Finding("matches-theirs"), made
    if method == MD5:
        return
    ours = build_string_to_sign(path, texts)
    yield Finding("whole-hmac"), _hmac(secret, ours)
    fields = ours.partition("\n")[2]
    yield Finding("without-path"), _hmac(secret, fields)
    yield Finding("with-line-end"), _hmac(secret, ours + "\n")
    yield Finding("with-crlf"), _hmac(secret, ours.replace("\n", "\r\n"))
    pairs = build_md5_string_to_sign(texts)
    for joined in (pairs, f"{path}&{pairs}", f"{path}\n{pairs}", f"{pairs}&key={secret}"):
        yield Finding("with-ampersand"), _hmac(secret, joined)
    for hashed in (
        ours + secret,
        secret + ours,
        f"{ours}\n{secret}",
        f"{ours}&key={secret}",
        f"{pairs}&key={secret}",
    ):
        yield Finding("plain-hash"), hashlib.sha256(hashed.encode()).hexdigest()
    digest = hmac.digest(secret.encode(), ours.encode(), "sha256")
    for encoded in (base64.b64encode(digest), base64.urlsafe_b64encode(digest)):
        yield Finding("base64"), encoded.decode()
    for end in ("\n", "\r\n", " "):
        yield Finding("secret-with-line-end"), _hmac(secret + end, ours)
    yield Finding("secret-and-text-swapped"), _hmac(ours, secret)
    try:
        key = bytes.fromhex(secret)
    except ValueError:
        return
    yield Finding("secret-as-hex"), hmac.digest(key, ours.encode(), "sha256").hex()


def _hmac(key: str, text: str) -> str:
    return hmac.digest(key.encode(), text.encode("utf-8", "replace"), "sha256").hex()


def _md5(pairs: str, secret: str) -> str:
    signed = f"{pairs}&key={secret}".encode("utf-8", "replace")
    return hashlib.md5(signed, usedforsecurity=False).hexdigest()
