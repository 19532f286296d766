"""JSON schemas of bodies: requests, answers, refusals and callbacks. Pure (JSON Schema 2020-12).

Rules:
- An answer's schema is open: a new field of `data` breaks no client. A request's schema says what happens to
  unknown fields.
- An answer lists the codes that the operation has, and no other.
- Generators of clients make good types of `type`, `properties`, `required` and `enum`. They make bad ones of
  a choice of objects, of a property that is `false` or always null, and of several types. So those keywords
  say what any answer may have. `if`, which generators ignore, says what goes with which code.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from merchant_wallet.api.reference.callbacks import CALLBACKS, CallbackReference
from merchant_wallet.api.reference.fields import PLAIN_TEXT, Field, make_schema
from merchant_wallet.api.reference.operations import COMMON_FIELDS, OperationReference, list_codes
from merchant_wallet.api.reference.sandbox_controls import LISTEN
from merchant_wallet.base.codes import (
    BODY_MALFORMED,
    CODES,
    SIGNATURE_MISMATCH,
    SUCCESS,
    TIMESTAMP_OUT_OF_TOLERANCE,
)
from merchant_wallet.base.signing import EVENT_ID

Schema = dict[str, Any]

NAME_PATTERN: Final = "^[A-Za-z0-9_]{1,64}$"
_NO_DATA: Final[Schema] = {"properties": {"data": {"type": "null"}}}
_LINK: Final = re.compile(r"\[([^\]]+)\]\(#[^)]+\)")


def refer(name: str, kind: str = "schemas") -> Schema:
    """A reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


def strip_links(text: str) -> str:
    """A text without its links into the guide."""
    return _LINK.sub(r"\1", text)


def capitalize(name: str) -> str:
    """`queryOrder` as a name of a schema: `QueryOrder`."""
    return name[0].upper() + name[1:]


def make_schemas(
    references: Sequence[OperationReference], chains: tuple[str, ...], *, sandbox: bool
) -> dict[str, Schema]:
    """All named schemas."""
    schemas: dict[str, Schema] = {"Code": _code_schema()}
    for reference in references:
        name = capitalize(reference.name)
        schemas[f"{name}Request"] = _request_schema(reference, chains)
        schemas[f"{name}Data"] = _data_schema(reference, chains, sandbox=sandbox)
        schemas[f"{name}Answer"] = _answer_schema(reference, sandbox=sandbox)
    schemas["Refusal"] = _refusal_schema()
    if any(reference.name == LISTEN for reference in references):
        schemas["ListenedAttempt"] = _attempt_schema()
    for callback in CALLBACKS:
        schemas[capitalize(callback.name)] = callback_schema(callback, chains)
    return schemas


def callback_schema(callback: CallbackReference, chains: tuple[str, ...]) -> Schema:
    """The schema of a callback's body."""
    return _object_schema(callback.fields, chains)


def _envelope(codes: Sequence[int], data: Schema, rest: Schema) -> Schema:
    """The envelope of one of these codes. `rest` is what else holds of it."""
    msg = {"type": "string", "description": "`success`, or a sentence that says what is wrong"}
    properties = {"code": refer("Code"), "msg": msg, "data": data}
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "if": {"properties": {"code": {"enum": [*codes]}}},
        "then": rest,
        "else": {"not": {}},
    }


def _object_schema(fields: Sequence[Field], chains: tuple[str, ...]) -> Schema:
    """An object that has all these fields, also those that are null."""
    return {
        "type": "object",
        "required": [field.name for field in fields],
        "properties": {field.name: _describe(field, chains) for field in fields},
    }


def _request_schema(reference: OperationReference, chains: tuple[str, ...]) -> Schema:
    fields = (*COMMON_FIELDS, *reference.request)
    return {
        "type": "object",
        "required": [field.name for field in fields if field.is_required],
        "properties": {field.name: _describe(field, chains) for field in fields},
        # A request that has an eventId could be a callback of ours, sent back.
        "propertyNames": {"pattern": NAME_PATTERN, "not": {"const": EVENT_ID}},
        "additionalProperties": {
            "description": "Unknown fields are signed and have no other effect.",
            "type": "string",
            "pattern": PLAIN_TEXT.replace("+$", "*$"),
        },
    }


def _describe(field: Field, chains: tuple[str, ...]) -> Schema:
    text = strip_links(field.meaning)
    return ({"description": text} if text else {}) | make_schema(field, chains)


def _data_schema(reference: OperationReference, chains: tuple[str, ...], *, sandbox: bool) -> Schema:
    """What `data` may have. None of it is required here, because a refusal has other fields."""
    fields = _object_schema(reference.answer, chains)["properties"]
    for kind in _list_explained(sandbox=sandbox).values():
        fields |= kind
    return {
        "type": "object",
        "description": "With code 200 it has every field of the answer.",
        "properties": fields,
    }


def _list_explained(*, sandbox: bool) -> dict[int, Schema]:
    """The codes whose refusals have a `data`, with its fields."""
    clock = {
        "serverTime": _whole("with 40102: the service's clock, in milliseconds"),
        "skewMs": _whole("with 40102: your timestamp less the service's clock, in milliseconds"),
    }
    text = {
        "type": "string",
        "description": "with 40101, in a sandbox alone: the text that the service signed",
    }
    return {TIMESTAMP_OUT_OF_TOLERANCE: clock} | (
        {SIGNATURE_MISMATCH: {"stringToSign": text}} if sandbox else {}
    )


def _whole(text: str) -> Schema:
    return {"type": "integer", "format": "int64", "description": text}


def _answer_schema(reference: OperationReference, *, sandbox: bool) -> Schema:
    """Every answer of an operation with HTTP status 200: the success, or a refusal with its code."""
    codes = [code for code in list_codes(reference) if CODES[code].http_status == 200]
    # A stream of callbacks is no such answer, so it has no success.
    success = [] if reference.name == LISTEN else [SUCCESS]
    data = {"oneOf": [refer(f"{capitalize(reference.name)}Data"), {"type": "null"}]}
    rest = _NO_DATA
    for code, fields in _list_explained(sandbox=sandbox).items():
        # The example of this refusal has no text: each request has its own.
        types = ["object", "null"] if code == SIGNATURE_MISMATCH else "object"
        rest = _when(code, {"data": {"type": types, "required": list(fields)}}, rest)
    if success:
        required = [field.name for field in reference.answer]
        own = {"msg": {"const": "success"}, "data": {"type": "object", "required": required}}
        rest = _when(SUCCESS, own, rest)
    return _envelope([*success, *codes], data, rest)


def _when(code: int, properties: Schema, otherwise: Schema) -> Schema:
    return {
        "if": {"properties": {"code": {"const": code}}},
        "then": {"properties": properties},
        "else": otherwise,
    }


def _refusal_schema() -> Schema:
    """A refusal with an HTTP status of its own."""
    codes = [row.code for row in CODES.values() if row.http_status != 200]
    return _envelope([BODY_MALFORMED, *codes], {"type": ["object", "null"]}, _NO_DATA)


def _attempt_schema() -> Schema:
    """A line of the stream of callbacks."""
    texts = {name: {"type": "string"} for name in ("eventId", "url", "body")}
    headers = {"type": "object", "additionalProperties": {"type": "string"}}
    return {
        "type": "object",
        "description": "One line: an attempt at a callback. A blank line comes at least every 5 seconds.",
        "required": ["eventId", "url", "headers", "body"],
        "properties": {**texts, "headers": headers},
    }


def _code_schema() -> Schema:
    rows = CODES.values()
    return {
        "type": "integer",
        "description": "Every code. A code never changes its meaning.",
        "enum": [row.code for row in rows],
        # The names of these fields are a convention of generators.
        "x-enum-varnames": [row.name for row in rows],
        "x-enum-descriptions": [row.meaning for row in rows],
        "x-ask-again": [row.retry for row in rows],
        "x-http-status": [row.http_status for row in rows],
    }
