"""What is kept of a refused request: its fields as they were sent, without what is secret. Pure.

Rules: of `sign` the beginning is kept, enough to see what was sent and too little to send again; a field that
is named like a secret is kept by its name alone. Nothing is kept of a body that can't be read: it names no
merchant, so it is nobody's.
"""

import re
from typing import Final, NamedTuple

import msgspec

from merchant_wallet.api.wire import NON_SCALAR, parse_body
from merchant_wallet.base.codes import Refused

SIGN_SHOWN: Final = 8
MAX_CONTENT_TYPE: Final = 100
_search_secret = re.compile(r"secret|passw|mnemonic|private|token|^(pin|key|seed)$|^pin_?code$", re.I).search


class CapturedRequest(NamedTuple):
    """A refused request as it was noted; `body` is what was sent."""

    app_key: str
    at_ms: int
    request_id: str
    path: str
    code: int
    msg: str
    source: str
    content_type: str
    body: bytes

    def __repr__(self) -> str:
        return f"CapturedRequest({self.request_id}, {self.path}, {self.code})"


class KeptFields(NamedTuple):
    """The fields of a request as JSON, in their order, and the names of those that are not kept whole.

    Null is what was neither a string nor a number, or was left out for its name.
    """

    json: str
    left_out: tuple[str, ...]


def read_fields(captured: CapturedRequest) -> KeptFields:
    """What is kept of a request's fields."""
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
