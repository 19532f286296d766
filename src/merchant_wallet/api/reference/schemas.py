"""JSON schemas of bodies: requests, answers, refusals and callbacks. Pure (JSON Schema 2020-12).

Rules:
- An answer's schema is open: a new field of `data` breaks no client. A request's schema says what happens to
  unknown fields.
- A refusal's schema lists the codes that the operation has, and no other.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from merchant_wallet.api.reference.callbacks import CALLBACKS, CallbackReference
from merchant_wallet.api.reference.fields import PLAIN_TEXT, Field, make_schema
from merchant_wallet.api.reference.operations import COMMON_FIELDS, OperationReference, list_codes
from merchant_wallet.api.reference.sandbox_controls import LISTEN
from merchant_wallet.base.codes import CODES, SIGNATURE_MISMATCH, SUCCESS, TIMESTAMP_OUT_OF_TOLERANCE
from merchant_wallet.base.signing import EVENT_ID

Schema = dict[str, Any]

NAME_PATTERN: Final = "^[A-Za-z0-9_]{1,64}$"
_EXPLAINED: Final = (SIGNATURE_MISMATCH, TIMESTAMP_OUT_OF_TOLERANCE)
"""Codes whose refusals have a `data`."""
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
        if reference.answer:
            schemas[f"{name}Data"] = _object_schema(reference.answer, chains)
            data = refer(f"{name}Data")
            schemas[f"{name}Success"] = _envelope({"const": SUCCESS}, {"const": "success"}, data)
        schemas[f"{name}Refusal"] = _refusal_schema(reference)
    schemas["ClockRefusal"] = _clock_schema()
    schemas["SignatureRefusal"] = _signature_schema(sandbox=sandbox)
    if any(reference.name == LISTEN for reference in references):
        schemas["ListenedAttempt"] = _attempt_schema()
    for callback in CALLBACKS:
        schemas[capitalize(callback.name)] = callback_schema(callback, chains)
    return schemas


def answer_schema(reference: OperationReference) -> Schema:
    """The schema of every answer of an operation with HTTP status 200."""
    name = capitalize(reference.name)
    success = [] if reference.name == LISTEN else [f"{name}Success"]
    parts = (*success, f"{name}Refusal", "ClockRefusal", "SignatureRefusal")
    return {"oneOf": [refer(part) for part in parts]}


def callback_schema(callback: CallbackReference, chains: tuple[str, ...]) -> Schema:
    """The schema of a callback's body."""
    return _object_schema(callback.fields, chains)


def code_envelope(code: int) -> Schema:
    """The envelope of a code that has an HTTP status of its own."""
    return _envelope({"const": code}, {"type": "string"}, {"type": "null"})


def _envelope(code: Schema, msg: Schema, data: Schema) -> Schema:
    properties = {"code": code, "msg": msg, "data": data}
    return {"type": "object", "required": list(properties), "properties": properties}


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
        "properties": {
            **{field.name: _describe(field, chains) for field in fields},
            # A request that has it could be a callback of ours, sent back.
            EVENT_ID: False,
        },
        "propertyNames": {"pattern": NAME_PATTERN},
        "additionalProperties": {
            "description": "Unknown fields are signed and have no other effect.",
            "type": ["string", "number", "null"],
            "pattern": PLAIN_TEXT.replace("+$", "*$"),
        },
    }


def _describe(field: Field, chains: tuple[str, ...]) -> Schema:
    text = strip_links(field.meaning)
    return ({"description": text} if text else {}) | make_schema(field, chains)


def _refusal_schema(reference: OperationReference) -> Schema:
    codes = [
        code for code in list_codes(reference) if CODES[code].http_status == 200 and code not in _EXPLAINED
    ]
    return _envelope({"enum": codes}, {"type": "string"}, {"type": "null"})


def _clock_schema() -> Schema:
    data = {
        "type": "object",
        "required": ["serverTime", "skewMs"],
        "properties": {
            "serverTime": {"type": "integer", "description": "the service's clock, in milliseconds"},
            "skewMs": {"type": "integer", "description": "your timestamp less the service's clock"},
        },
    }
    return _envelope({"const": TIMESTAMP_OUT_OF_TOLERANCE}, {"type": "string"}, data)


def _signature_schema(*, sandbox: bool) -> Schema:
    data: Schema = {"type": "null"}
    if sandbox:
        text = {"type": "string", "description": "the text that the service signed; in a sandbox alone"}
        data = {
            "type": ["object", "null"],
            "required": ["stringToSign"],
            "properties": {"stringToSign": text},
        }
    return _envelope({"const": SIGNATURE_MISMATCH}, {"type": "string"}, data)


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
    rows = [
        {
            "const": row.code,
            "title": row.name,
            "description": row.meaning,
            "x-ask-again": row.retry,
            "x-http-status": row.http_status,
        }
        for row in CODES.values()
    ]
    return {"type": "integer", "description": "Every code. A code never changes its meaning.", "oneOf": rows}
