"""The rules of docs/integrating.md for signatures, implemented a second time. Nothing of the service is used.

`refuse_fields` and `check_*` return None if all is well, otherwise a sentence that says what is wrong.
"""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

HMAC: Final = "HMAC"
MD5: Final = "MD5"
TEXT: Final = "text"
NUMBER: Final = "number"
SHORT_SIGN: Final = 20
LONG_SIGN: Final = 32
SHORT_OPERATIONS: Final = ("createMerchantWithdrawOrder", "exchange")
CALLBACK: Final = "callback"
TOLERANCE_MS: Final = 300_000

Field = tuple[str, str | None, str]
"""A field's name, its text (None is null) and whether it is written as a JSON text or as a JSON number."""

HIDDEN_IN_MD5: Final = ("&appKey=", "&eventId=", "&nonceStr=", "&timestamp=")
NEVER_IN_ANSWERS: Final = ("appKey", "eventId", "nonceStr", "timestamp")


class Number(str):
    """A JSON number as its text in the body."""


class BadBody(Exception):
    """A body is not one flat object of uniquely and properly named texts, numbers and nulls."""


def string_to_sign(method: str, path: str, fields: Iterable[Field]) -> str:
    """The text that is signed. For MD5 without `&key=` and the secret."""
    lines = [
        f"{name}={text}"
        for name, text, _ in sorted(fields, key=lambda field: field[0].encode("utf-8"))
        if name != "sign" and text is not None and text != ""
    ]
    if method == MD5:
        return "&".join(lines)
    return "\n".join([path, *lines])


def sign(method: str, secret: str, path: str, fields: Iterable[Field]) -> str:
    """The 32 characters of `sign`."""
    text = string_to_sign(method, path, fields)
    if method == MD5:
        return hashlib.md5(f"{text}&key={secret}".encode()).hexdigest().upper()
    return hmac.new(secret.encode(), text.encode(), "sha256").hexdigest()[:LONG_SIGN]


def sign_answer(method: str, secret: str, operation: str, fields: Iterable[Field], nonce: str) -> str:
    """`data.sign` of a success."""
    length = SHORT_SIGN if operation in SHORT_OPERATIONS else LONG_SIGN
    bound: list[Field] = [] if method == MD5 else [("code", "200", NUMBER), ("nonceStr", nonce, TEXT)]
    return sign(method, secret, f"/merchant/{operation}", [*fields, *bound])[:length]


def sign_webhook(callback_secret: str, event_id: str, at_s: int | str, body: str) -> str:
    """The header `webhook-signature` of Standard Webhooks."""
    key = base64.b64decode(callback_secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{event_id}.{at_s}.{body}".encode(), "sha256").digest()
    return "v1," + base64.b64encode(digest).decode()


def refuse_fields(method: str, fields: Iterable[Field]) -> str | None:
    """What no request, answer or callback may contain, because its signature would not be clear."""
    for name, text, _ in fields:
        if not re.fullmatch("[A-Za-z0-9_]{1,64}", name):
            return f"the name {name!r} is not 1 to 64 of A-Z, a-z, 0-9 and _"
        if text is None:
            continue
        if any(ord(character) < 0x20 or 0x7F <= ord(character) <= 0x9F for character in text):
            return f"{name} has a control character"
        if method == MD5 and any(hidden in text for hidden in HIDDEN_IN_MD5):
            return f"{name} hides a field from MD5"
    return None


def refuse_request(method: str, fields: Iterable[Field]) -> str | None:
    """As `refuse_fields`, for a request."""
    fields = list(fields)
    if any(name == "eventId" and text for name, text, _ in fields):
        return "eventId belongs to callbacks"
    return refuse_fields(method, fields)


def read_object(text: str) -> dict[str, Any]:
    """A JSON object with its numbers as `Number`. Raises BadBody."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(found)) < len(found):
            raise BadBody("a field is named twice")
        return dict(found)

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_int=Number, parse_float=Number)
    except ValueError as error:
        raise BadBody("the body is not JSON") from error
    if not isinstance(value, dict):
        raise BadBody("the body is not an object")
    return value


def flat_fields(values: Mapping[str, Any]) -> list[Field]:
    """The fields of a flat object. Raises BadBody."""
    fields: list[Field] = []
    for name, value in values.items():
        if value is not None and not isinstance(value, str):
            raise BadBody(f"{name} is neither text nor number")
        fields.append((name, None if value is None else str(value), _kind(value)))
    return fields


def check_answer(method: str, secret: str, operation: str, nonce: str, body: str) -> str | None:
    """Whether a body with code 200 comes from the service and belongs to the request."""
    try:
        data = read_object(body)["data"]
        fields = flat_fields(data) if isinstance(data, dict) else []
    except BadBody as error:
        return str(error)
    wrong = refuse_fields(method, fields)
    if wrong:
        return wrong
    if method == MD5 and (foreign := [name for name, _, _ in fields if name in NEVER_IN_ANSWERS]):
        return f"{foreign[0]} belongs to requests and callbacks, whose MD5 signatures would hold here"
    given = next((text for name, text, _ in fields if name == "sign"), None)
    if given != sign_answer(method, secret, operation, fields, nonce):
        return "sign is not the signature of this answer"
    return None


def check_callback(method: str, secret: str, body: str, now_ms: int) -> str | None:
    """Whether a callback's `sign` is right and fresh."""
    try:
        fields = flat_fields(read_object(body))
    except BadBody as error:
        return str(error)
    texts = {name: text for name, text, _ in fields}
    wrong = refuse_fields(method, fields)
    if wrong:
        return wrong
    if not texts.get("eventId"):
        return "there is no eventId"
    if texts.get("sign") != sign(method, secret, CALLBACK, fields):
        return "sign is not the signature of this callback"
    return _check_age(texts.get("timestamp") or "", 1, now_ms)


def check_webhook(secret: str, headers: Mapping[str, str], body: str, now_ms: int) -> str | None:
    """Whether a callback's headers of Standard Webhooks are right and fresh."""
    found = {name.lower(): value for name, value in headers.items()}
    event_id, at_s = found.get("webhook-id", ""), found.get("webhook-timestamp", "")
    if sign_webhook(secret, event_id, at_s, body) not in found.get("webhook-signature", "").split(" "):
        return "no webhook-signature is right"
    try:
        fields = flat_fields(read_object(body))
    except BadBody as error:
        return str(error)
    wrong = refuse_fields(HMAC, fields)
    if wrong:
        return wrong
    if (event_id, TEXT) not in [(text, kind) for name, text, kind in fields if name == "eventId"]:
        return "webhook-id is not the eventId"
    return _check_age(at_s, 1000, now_ms)


def _check_age(text: str, unit_ms: int, now_ms: int) -> str | None:
    if not re.fullmatch("[0-9]{1,20}", text):
        return "there is no timestamp"
    if abs(now_ms - int(text) * unit_ms) > TOLERANCE_MS:
        return "the timestamp is not of the last minutes"
    return None


def _kind(value: Any) -> str:
    return NUMBER if isinstance(value, Number) else TEXT
