"""What is stored of a refused or logged request: its fields as they were sent, without secrets. Pure.

Rules:
- Of `sign` only the beginning is stored: enough to recognise it, too little to send it again.
- Of a field with a name like a secret only the name is stored.
- Of a body that can't be read no field is stored. It is its merchant's if an appKey could be found in it.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from merchant_wallet.api.wire import NON_SCALAR, parse_body
from merchant_wallet.base.codes import Refused

SIGN_SHOWN: Final = 8
MAX_CONTENT_TYPE: Final = 100
_search_secret = re.compile(r"secret|passw|mnemonic|private|token|^(pin|key|seed)$|^pin_?code$", re.I).search


class CapturedRequest(NamedTuple):
    """A request before redaction; `body` is what was sent. `is_signed`: its signature was right."""

    app_key: str
    at_ms: int
    request_id: str
    path: str
    code: int
    msg: str
    source: str
    content_type: str
    body: bytes
    is_signed: bool = True

    def __repr__(self) -> str:
        return f"CapturedRequest({self.request_id}, {self.path}, {self.code})"


class KeptFields(NamedTuple):
    """The fields of a request as JSON, in their order, and the names of those not stored completely.

    A value is null if it was neither a string nor a number, or if it was left out because of its name.
    """

    json: str
    left_out: tuple[str, ...]


def read_fields(captured: CapturedRequest) -> KeptFields:
    """The fields of a request, without secrets."""
    try:
        fields = parse_body(captured.content_type, captured.body)
    except Refused:
        return KeptFields("{}", ())
    kept: dict[str, str | None] = {}
    left_out = []
    for name, value in fields.items():
        kept[name] = None if value is NON_SCALAR else value
        if name == "sign" and value is not NON_SCALAR:
            kept[name] = value[:SIGN_SHOWN]
            left_out.append(name)
        elif _search_secret(name):
            kept[name] = None
            left_out.append(name)
    return KeptFields(msgspec.json.encode(kept).decode(), tuple(left_out))


def storable(text: str) -> str:
    """A text without characters that PostgreSQL refuses: one odd header must not fail the whole write."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")


def make_columns(captured: Sequence[CapturedRequest]) -> dict[str, list[Any]]:
    """What is stored of requests, by columns. Parsing many bodies takes time."""
    fields = [read_fields(one) for one in captured]
    return {
        "app_keys": [one.app_key for one in captured],
        "at_ms": [one.at_ms for one in captured],
        "request_ids": [one.request_id for one in captured],
        "codes": [one.code for one in captured],
        "sources": [storable(one.source) for one in captured],
        "fields": [kept.json for kept in fields],
        "left_out": [" ".join(kept.left_out) for kept in fields],
    }
