"""Compares two strings to sign, ours and theirs: where they first differ, and why. Pure.

Rules: `compare` says where. `explain` names the usual mistakes, each once: mistakes of the whole string come
before those of single fields.
"""

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Final
from urllib.parse import unquote, unquote_plus

import msgspec

from merchant_wallet.api.debugger.bodies import ReadBody
from merchant_wallet.api.debugger.findings import Finding
from merchant_wallet.base.invisible_text import describe_character
from merchant_wallet.base.signing import MD5, Method

_SECRET_NAMES: Final = frozenset({"key", "secret", "appsecret", "app_secret", "secretkey"})
_SHOWN: Final = 100
"""So many characters of a value are shown in a sentence."""
_split_fields = re.compile(r"&(?=[A-Za-z0-9_]{1,64}=)").split


class Difference(msgspec.Struct, frozen=True):
    """Where two strings first differ: offset, line and column (from 1), and both characters."""

    offset: int
    line: int
    column: int
    ours: str
    theirs: str


def compare(ours: str, theirs: str) -> Difference | None:
    """The first difference of two strings, counted in code points; None if they are equal."""
    if ours == theirs:
        return None
    shorter = min(len(ours), len(theirs))
    offset = next((place for place in range(shorter) if ours[place] != theirs[place]), shorter)
    before = ours[:offset]
    line, column = before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
    mine, other = ours[offset : offset + 1], theirs[offset : offset + 1]
    return Difference(offset, line, column, describe_character(mine), describe_character(other))


def explain(path: str, read: ReadBody, method: Method, ours: str, theirs: str, body: str) -> list[Finding]:
    """Why their string differs from ours."""
    if ours == theirs:
        return [Finding("equal")]
    if theirs.strip() == body.strip():
        return [Finding("signs-body")]
    findings = list(_judge_edges(theirs))
    text = theirs.strip("\r\n\t \ufeff\0")
    if "\r\n" in text:
        findings.append(Finding("crlf"))
        text = text.replace("\r\n", "\n")
    pieces = text.split("\n")
    if method != MD5 and len(pieces) <= 2 and len(_split_fields(pieces[-1])) > 1:
        findings.append(Finding("joined"))
        pieces = [*pieces[:-1], *_split_fields(pieces[-1])]
    elif method == MD5:
        pieces = [field for piece in pieces for field in _split_fields(piece)]
    findings += _judge_first(path, pieces, method)
    return findings + list(_judge_fields(read, pieces, method))


def _judge_edges(theirs: str) -> Iterator[Finding]:
    if theirs and theirs[-1] in "\r\n\t \0":
        yield Finding("line-end", {"character": describe_character(theirs[-1])})
    if theirs and theirs[0] in "\r\n\t \ufeff":
        yield Finding("line-start", {"character": describe_character(theirs[0])})


def _judge_first(path: str, pieces: list[str], method: Method) -> Iterator[Finding]:
    """The findings about the line of the path. Removes it from `pieces`."""
    is_field = re.match(r"[A-Za-z0-9_]{1,64}=", pieces[0]) is not None
    first = None if is_field else pieces.pop(0)
    if method == MD5:
        if first:
            yield Finding("path-not-signed")
    elif first is None:
        yield Finding("no-path", {"right": path})
    elif first != path:
        yield Finding("other-path", {"path": _cut(first), "right": path})


def _judge_fields(read: ReadBody, pieces: list[str], method: Method) -> Iterator[Finding]:
    theirs: dict[str, str] = {}
    for piece in pieces:
        name, _, value = piece.partition("=")
        if name in theirs:
            yield Finding("twice", {"field": name})
        theirs[name] = value
    yield from _judge_names(read, theirs)
    common = [name for name in theirs if name in read.texts]
    if common != sorted(common):
        yield _explain_order(read, common)
    for name in common:
        if theirs[name] != read.texts[name]:
            yield _judge_value(name, read.texts[name], theirs[name])


def _judge_names(read: ReadBody, theirs: dict[str, str]) -> Iterator[Finding]:
    for name in theirs:
        if name == "sign":
            yield Finding("signs-sign")
        elif name in read.absent:
            yield Finding("signs-absent", {"field": name})
        elif name not in read.texts and name.lower() in _SECRET_NAMES:
            yield Finding("signs-secret", {"field": name})
        elif name not in read.texts:
            yield Finding("extra", {"field": _cut(name) or "an empty line"})
    for name in sorted(read.texts):
        if name not in theirs:
            yield Finding("missing", {"field": name})


def _explain_order(read: ReadBody, common: list[str]) -> Finding:
    if common == sorted(common, key=str.lower):
        return Finding("order-case")
    if common == [name for name in read.sent if name in common]:
        return Finding("order-sent")
    return Finding("order")


def _judge_value(name: str, ours: str, theirs: str) -> Finding:
    values = {"field": name, "ours": _cut(ours), "theirs": _cut(theirs)}
    if ours in (unquote(theirs), unquote_plus(theirs)):
        return Finding("url-encoded", {"field": name})
    if theirs.strip("\"'") == ours:
        return Finding("quoted", {"field": name})
    if "".join(theirs.split()) == "".join(ours.split()):
        return Finding("spaces", {**values, "ours": f"‘{_cut(ours)}’", "theirs": f"‘{_cut(theirs)}’"})
    return Finding("number-text" if _is_same_number(ours, theirs) else "value", values)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _is_same_number(ours: str, theirs: str) -> bool:
    try:
        return Decimal(ours) == Decimal(theirs)
    except InvalidOperation:
        return False
