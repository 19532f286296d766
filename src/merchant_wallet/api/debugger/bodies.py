"""Reads a request for the debugger: its fields as the service reads them, and findings about them. Pure.

Rules: the service's own reader decides (`wire`, `signing`). Further findings only explain.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from merchant_wallet.api.debugger.findings import Finding
from merchant_wallet.api.wire import NON_SCALAR, parse_body
from merchant_wallet.base.codes import Refused
from merchant_wallet.base.invisible_text import describe_character
from merchant_wallet.base.signing import (
    EVENT_ID,
    MD5,
    SIGN_LENGTH,
    Method,
    find_control_character,
    find_hidden_field,
)
from merchant_wallet.merchants.records import OPERATIONS

JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
PATHS: Final = tuple(f"/merchant/{operation}" for operation in OPERATIONS)

_search_percent = re.compile(r"%[0-9A-Fa-f]{2}").search
_search_control = re.compile(r"[\x00-\x1f\x7f-\x9f]").search
_search_not_hex = re.compile(r"[^0-9A-Fa-f]").search
_find_members = re.compile(r'"(\w{1,64})"\s*:\s*"((?:[^"\\]|\\.)*)"').findall


class ReadBody(msgspec.Struct, frozen=True):
    """A body as the service reads it: the signed texts, `sign` as it was sent, and the absent fields.

    `sent` has all names in the order they were sent.
    """

    texts: dict[str, str]
    sign: str | None
    absent: tuple[str, ...]
    sent: tuple[str, ...]


class _Number(str):
    """The literal of a JSON number, distinguished from a string."""


def read_body(body: str, content_type: str) -> tuple[ReadBody | None, list[Finding]]:
    """The body and its findings; None if the service could not read it."""
    if body.startswith("\ufeff"):
        return None, [Finding("bom")]
    try:
        fields = parse_body(content_type, body.encode("utf-8", "surrogatepass"))
    except Refused as refused:
        return None, [Finding("body", {"msg": refused.refusal.msg})]
    raw = _read_raw(body, is_json=JSON in content_type.lower())
    texts = {name: value for name, value in fields.items() if value is not NON_SCALAR}
    sign = texts.pop("sign", None)
    absent = tuple(name for name in raw if name not in fields)
    read = ReadBody(texts, sign, absent, tuple(raw))
    odd = [Finding("non-scalar", {"field": name}) for name, value in fields.items() if value is NON_SCALAR]
    findings = [*odd, *(Finding("absent", {"field": name}) for name in absent if name != "sign")]
    if not odd:
        findings += _judge_texts(read, raw, body)
    return read, findings


def _read_raw(body: str, *, is_json: bool) -> dict[str, Any]:
    if not is_json:
        return dict(parse_qsl(body, keep_blank_values=True))
    raw: dict[str, Any] = json.loads(body, parse_int=_Number, parse_float=_Number)
    return raw


def _judge_texts(read: ReadBody, raw: dict[str, Any], body: str) -> Iterator[Finding]:
    offender = find_control_character({**read.texts, "sign": read.sign or ""})
    if offender is not None:
        found = _search_control(read.texts.get(offender, read.sign or ""))
        assert found is not None
        yield Finding("control", {"field": offender, "character": describe_character(found[0])})
    escaped = {name for name, text in _find_members(body) if "\\" in text}
    for name, text in read.texts.items():
        if isinstance(raw.get(name), _Number) and (shortest := find_shortest_number(text)) != text:
            yield Finding("number", {"field": name, "sent": text, "shortest": shortest or "another text"})
        if name in escaped:
            yield Finding("escaped", {"field": name})
        if percent := _search_percent(text):
            yield Finding("percent", {"field": name, "escape": percent[0]})
        if text != text.strip():
            yield Finding("edges", {"field": name})
        if not unicodedata.is_normalized("NFC", text):
            yield Finding("decomposed", {"field": name})


def judge_marks(read: ReadBody, method: Method) -> list[Finding]:
    """Findings about values that make a request look like a callback, or that hide a field from MD5."""
    findings = [Finding("event-id")] if EVENT_ID in read.texts else []
    hidden = find_hidden_field(read.texts) if method == MD5 else None
    if hidden is not None:
        findings.append(Finding("hidden", {"field": hidden[0], "hidden": hidden[1]}))
    return findings


def find_shortest_number(text: str) -> str | None:
    """The shortest decimal notation of a number's text; None if it is not a finite number of usual size."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number.adjusted()) > 30:
        return None
    plain = f"{number:f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def judge_path(path: str) -> list[Finding]:
    """The findings about a path. They name the path that is meant."""
    if path in PATHS:
        return []
    try:
        bare = "/" + urlsplit(path.strip()).path.strip("/")
    except ValueError:
        # Not a URL, for example one with half an IPv6 address.
        bare = path.strip()
    exact = next((right for right in PATHS if bare.lower() in (right.lower(), right[9:].lower())), None)
    if exact is not None:
        return [Finding("path-nearly", {"path": path, "right": exact})]
    near = get_close_matches(bare, PATHS, n=1)
    return [Finding("path-unknown", {"path": path, "right": near[0] if near else "one of the eight"})]


def judge_sign(sign: str | None, method: Method) -> list[Finding]:
    """The findings about the form of a signature."""
    if not sign:
        return [Finding("sign-missing")]
    odd = _search_not_hex(sign)
    if odd is not None:
        return [Finding("sign-not-hex", {"character": describe_character(odd[0])})]
    if len(sign) != SIGN_LENGTH:
        return [Finding("sign-length", {"length": str(len(sign))})]
    is_upper, right = sign == sign.upper(), "upper" if method == MD5 else "lower"
    given = "upper" if is_upper else "lower" if sign == sign.lower() else "mixed"
    if given == right or sign.isdecimal():
        return []
    return [Finding("sign-case", {"case": given, "right": right})]
