"""The schemas of the document, ready to validate bodies. A strict one refuses what is not described."""

import copy
import json
from functools import cache
from typing import Any

from jsonschema_rs import Draft202012Validator

from merchant_wallet.api.reference.openapi import build_document

Json = Any


@cache
def document() -> dict[str, Json]:
    """The document as a file would have it."""
    built: dict[str, Json] = json.loads(json.dumps(build_document()))
    return built


def find_errors(schema: Json, value: Json, *, strict: bool = True) -> list[str]:
    """What is wrong with a value. A strict schema has no fields besides those it names."""
    return [error.message for error in _make_validator(json.dumps(schema), strict).iter_errors(value)]


@cache
def _make_validator(schema: str, strict: bool) -> Draft202012Validator:
    components = document()["components"]
    return Draft202012Validator(
        {**json.loads(schema), "components": _close(components) if strict else components}
    )


def answer_schema(path: str, status: int) -> Json:
    """The schema of an answer."""
    response = document()["paths"][path]["post"]["responses"][str(status)]
    while "$ref" in response:
        response = document()["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    return response["content"]["application/json"]["schema"]


def request_schema(operation: str) -> Json:
    """The schema of an operation's request."""
    body = document()["paths"][f"/merchant/{operation}"]["post"]["requestBody"]
    return body["content"]["application/json"]["schema"]


def webhook_schema(name: str) -> Json:
    """The schema of a callback's body."""
    body = document()["x-webhooks"][name]["post"]["requestBody"]
    return body["content"]["application/json"]["schema"]


def _close(components: Json) -> Json:
    closed = copy.deepcopy(components)
    for schema in closed["schemas"].values():
        _close_objects(schema)
    return closed


def _close_objects(schema: Json) -> None:
    if not isinstance(schema, dict):
        return
    if "properties" in schema:
        schema.setdefault("additionalProperties", False)
        for part in schema["properties"].values():
            _close_objects(part)
