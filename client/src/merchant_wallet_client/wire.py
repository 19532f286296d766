"""Requests and answers as they are on the wire. Pure.

Rules:
- A JSON number stays the text that came (`Number`), because that text is signed.
- An object that names a field twice is refused: two readers could read it differently.
- Values that could look like other fields are refused before they are signed.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, NoReturn

from merchant_wallet_client.errors import BadArgumentError
from merchant_wallet_client.signing import MD5, Method, build_string_to_sign, search_control, search_hidden

PREFIX: Final = "/merchant/"
EVENT_ID: Final = "eventId"
MAX_BODY_BYTES: Final = 16 * 1024
RETRY_AFTER: Final = "retry-after"
REQUEST_ID: Final = "x-request-id"

_match_name = re.compile(r"[A-Za-z0-9_]{1,64}").fullmatch
_match_amount = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?").fullmatch


class Number(str):
    """A JSON number as its text on the wire."""

    __slots__ = ()


Value = str | int | None
Amount = Decimal | int | str
"""An amount is never a float: a float loses cents."""


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request: what is sent, and what was signed."""

    path: str
    fields: Mapping[str, Value]
    method: Method

    @property
    def string_to_sign(self) -> str:
        """The text that `sign` was computed from (with MD5 without the secret)."""
        return build_string_to_sign(self.method, self.path, self.fields)

    @property
    def body(self) -> str:
        """The JSON object that is sent."""
        return json.dumps(self.fields, separators=(",", ":"))

    @property
    def nonce(self) -> str:
        """The nonceStr, which the answer's signature covers."""
        return str(self.fields["nonceStr"])


@dataclass(frozen=True, slots=True)
class Answer:
    """The envelope of an answer. `body` is the text that came, and numbers in `data` are `Number`.

    Neither is in its repr: a sub-user's `url` opens the wallet.

    `is_ambiguous`: `data` names a field twice, and programs differ in which one they read.
    """

    http_status: int
    body: str = field(repr=False)
    code: int
    msg: str
    data: Mapping[str, Any] = field(repr=False)
    request_id: str | None = None
    retry_after_s: float | None = None
    is_ambiguous: bool = False


def check_fields(fields: Mapping[str, object], method: Method) -> dict[str, Value]:
    """The fields as they are sent. Raises BadArgumentError for a value that must not be signed."""
    checked: dict[str, Value] = {}
    for name, value in fields.items():
        if not is_name(name):
            raise BadArgumentError(f"{name!r} is no name of a field: 1 to 64 of A-Z, a-z, 0-9 and _")
        checked[name] = _check_value(name, value, method)
    if EVENT_ID in checked:
        raise BadArgumentError(f"{EVENT_ID} belongs to callbacks: a request that has it is refused")
    return checked


def _check_value(name: str, value: object, method: Method) -> Value:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if not isinstance(value, str):
        raise BadArgumentError(f"{name} must be a text or a whole number, not {type(value).__name__}")
    if search_control(value):
        raise BadArgumentError(f"{name} has a control character, which the service refuses: remove it")
    if method == MD5 and (hidden := search_hidden(value)):
        raise BadArgumentError(
            f"{name} has {hidden[0]!r}, which the method MD5 can't tell from another field: "
            "write it in another way, or ask the operator for HMAC"
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadArgumentError(f"{name} has half of a surrogate pair: it is no valid text") from None
    # Plain text: the name of an enum's member is not on the wire.
    return str(value)


def write_amount(amount: Amount, name: str = "amount") -> str:
    """An amount as a plain decimal. A text is sent as it is. Raises BadArgumentError."""
    if isinstance(amount, float | bool):
        raise BadArgumentError(f"{name} must be a Decimal, a whole number or a text: a float loses cents")
    text = format(amount, "f") if isinstance(amount, Decimal) else str(amount)
    if not _match_amount(text):
        raise BadArgumentError(f"{name} must be a plain decimal such as 12.50, not {text!r}")
    return text


def read_answer(http_status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """Parse an answer. `headers` has small letters. Raises ValueError if it is not the envelope."""
    text = body.decode()
    envelope = read_object(text)
    code, msg, data = (envelope.get(name) for name in ("code", "msg", "data"))
    if not isinstance(code, Number) or not isinstance(msg, str):
        raise ValueError("it is not the interface's envelope")
    return Answer(
        http_status=http_status,
        body=text,
        code=int(code),
        msg=msg,
        data=data if isinstance(data, dict) else {},
        request_id=headers.get(REQUEST_ID),
        retry_after_s=_read_seconds(headers.get(RETRY_AFTER)),
        is_ambiguous=isinstance(data, _Ambiguous),
    )


class _Ambiguous(dict[str, Any]):
    """An object that names a field twice."""


def read_object(text: str) -> dict[str, Any]:
    """The fields of a JSON object, numbers as `Number`. Raises ValueError, also if it names a field twice."""
    try:
        found = json.loads(
            text,
            parse_int=Number,
            parse_float=Number,
            parse_constant=_refuse_constant,
            object_pairs_hook=_make_object,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")
    if isinstance(found, _Ambiguous):
        raise ValueError("it names a field twice")
    return found


def is_name(name: str) -> bool:
    """Whether a field may have this name."""
    return _match_name(name) is not None


def has_only_texts(data: Mapping[str, object]) -> bool:
    """Whether each value is a text, a number or null. Others have no text that could be signed."""
    return all(value is None or isinstance(value, str) for value in data.values())


def _read_seconds(text: str | None) -> float | None:
    """The seconds of `Retry-After`. A date (RFC 9110 allows it) is not used by the service."""
    return float(text) if text is not None and text.isascii() and text.isdigit() else None


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    return unique if len(unique) == len(pairs) else _Ambiguous(unique)


def _refuse_constant(literal: str) -> NoReturn:
    raise ValueError(f"it has {literal}, which is not JSON")
