"""The OpenAPI 3.1 document of the interface, made from the tables beside this module.

Rules: the document has everything that the tables have. Its examples are those of the merchants' guide:
a real run of the service wrote them into `examples.json`.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from merchant_wallet.api.reference.callbacks import CALLBACKS, HEADERS, CallbackReference
from merchant_wallet.api.reference.operations import (
    COMMON_FIELDS,
    REFERENCES,
    OperationReference,
    list_codes,
)
from merchant_wallet.api.reference.refusals import show_refusal
from merchant_wallet.api.reference.sandbox_controls import CONTROLS, LISTEN
from merchant_wallet.api.reference.sandbox_controls import EXAMPLES as CONTROL_EXAMPLES
from merchant_wallet.api.reference.sandbox_controls import GROUP as SANDBOX_GROUP
from merchant_wallet.api.reference.schemas import (
    Schema,
    capitalize,
    make_schemas,
    refer,
    strip_links,
)
from merchant_wallet.base.chains import CODES as CHAIN_CODES
from merchant_wallet.base.codes import (
    BODY_MALFORMED,
    CODES,
    METHOD_NOT_ALLOWED,
    PATH_UNKNOWN,
    SUCCESS,
    TOO_MANY_REQUESTS,
    UNAVAILABLE,
)
from merchant_wallet.base.version import read_version

EXAMPLES: Final = Path(__file__).with_name("examples.json")
EXAMPLE_SERVER: Final = "https://wallet.example"
JSON: Final = "application/json"
STREAM: Final = "application/x-ndjson"
_GROUPS: Final = {
    "Accounts": "Balances, sub-users' wallets and exchange.",
    "Transfers": "Between your balance and the wallets of your sub-users.",
    "Withdrawals": "From your balance to an address on a chain.",
    SANDBOX_GROUP: "Control actions for your tests. A live service has none of these paths (404).",
}
_DESCRIPTION: Final = """\
Every request is a flat JSON object, signed by its field `sign`. The same fields as a form
(`application/x-www-form-urlencoded`) are accepted too.

1. Take every field that you send except `sign`, and leave out those that are null or empty.
2. Sort them by name, in byte order.
3. The first line is the path, such as `/merchant/getMerchantBalance`. Then comes one line `name=value` for
   each field. The value is its plain text: a JSON string after its escapes are resolved, a JSON number
   exactly as you write it.
4. Join the lines with a line feed. `sign` is the first 32 hexadecimal digits of HMAC-SHA256 over that text;
   the key is your secret.

A value is a text or a number, also where only one of them is named here. Send amounts as texts. A null and an
empty text mean that the field is absent.

Look at `code`, not at the HTTP status: a refusal has HTTP status 200, like a success. If `code` is 200,
`data.sign` is made in the same way over the fields of `data` with `code` and the `nonceStr` of the request.
Numbers are signed as they are written in the answer. Refusals are not signed.
"""
_HEADERS_OF_CODES: Final = {
    METHOD_NOT_ALLOWED: "Allow",
    TOO_MANY_REQUESTS: "RetryAfter",
    UNAVAILABLE: "RetryAfter",
}


def build_document(
    server_url: str = EXAMPLE_SERVER,
    chains: tuple[str, ...] = CHAIN_CODES,
    *,
    sandbox: bool = True,
) -> dict[str, Any]:
    """The whole document, as values of JSON. The control actions are in it for a sandbox alone."""
    references = (*REFERENCES, *CONTROLS) if sandbox else REFERENCES
    examples = read_examples()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "merchant-wallet",
            "version": read_version(),
            "summary": "Balances, sub-users' wallets, withdrawals and exchange for merchants",
            "description": _DESCRIPTION,
            "contact": {"name": "The operator of this service", "url": server_url},
            "license": {"name": "Proprietary", "identifier": "LicenseRef-Proprietary"},
        },
        "servers": [{"url": server_url}],
        # No scheme of OpenAPI describes a signature that is a field of the body.
        "security": [],
        "tags": [
            {"name": name, "description": text}
            for name, text in _GROUPS.items()
            if any(reference.group == name for reference in references)
        ],
        "paths": {reference.path: {"post": _make_operation(reference)} for reference in references},
        # Of `webhooks` openapi-generator makes a client that calls them, and its Python has a syntax error.
        "x-webhooks": {
            callback.name: {"post": _make_webhook(callback, examples["callbacks"])} for callback in CALLBACKS
        },
        "components": {
            "schemas": make_schemas(references, chains, sandbox=sandbox),
            "responses": _make_responses(),
            "headers": _make_headers(),
            "examples": _make_refusal_examples(),
        },
    }


def write_document(document: Mapping[str, Any]) -> str:
    """The document as the text of a file."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


@cache
def read_examples() -> dict[str, Any]:
    """Requests, answers and callbacks of a real run."""
    examples: dict[str, Any] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return examples


def _make_operation(reference: OperationReference) -> Schema:
    example = find_example(reference)
    schema = refer(f"{capitalize(reference.name)}Request")
    body = {"schema": schema, "example": example["request"]}
    operation: Schema = {
        "operationId": reference.name,
        "summary": reference.summary,
        "description": strip_links(reference.text),
        "tags": [reference.group],
        "requestBody": {"required": True, "content": {JSON: body}},
        "responses": {
            "200": _make_answer(reference, example["answer"]),
            "400": refer("Malformed", "responses"),
            **{
                str(code): refer(_name_response(code), "responses")
                for code in (PATH_UNKNOWN, METHOD_NOT_ALLOWED)
            },
            **{
                str(CODES[code].http_status): refer(_name_response(code), "responses")
                for code in list_codes(reference)
                if CODES[code].http_status != 200
            },
        },
    }
    return operation


def find_example(reference: OperationReference) -> Any:
    """A request and its answer, from a real run. A stream has no answer."""
    examples = read_examples()
    kind = "controls" if reference in CONTROLS else "operations"
    if (example := examples[kind].get(reference.name)) is not None:
        return example
    common = {field.name: examples["controls"]["fund"]["request"][field.name] for field in COMMON_FIELDS}
    return {"request": {**common, **CONTROL_EXAMPLES[reference.name]}, "answer": None}


def _make_answer(reference: OperationReference, success: Any) -> Schema:
    """What HTTP status 200 brings: the success, or a refusal with its code."""
    codes = [code for code in list_codes(reference) if CODES[code].http_status == 200]
    examples = {"success": {"value": success}} if success else {}
    examples |= {str(code): refer(f"Code{code}", "examples") for code in codes}
    content: Schema = {JSON: {"schema": refer(f"{capitalize(reference.name)}Answer"), "examples": examples}}
    if reference.name == LISTEN:
        # Each line of the stream is such an object, or blank.
        content[STREAM] = {"schema": refer("ListenedAttempt")}
    answer: Schema = {
        "description": "Done if `code` is 200. Otherwise it was refused, and `code` and `msg` say why.",
        "headers": {"X-Request-Id": refer("RequestId", "headers")},
        "content": content,
    }
    if reference.name == "createMerchantWithdrawOrder":
        answer["links"] = {
            "queryOrder": {
                "operationId": "queryOrder",
                "description": "The order, as it is later.",
                # Both ids are in it, and fields that are not known have no effect.
                "requestBody": "$response.body#/data",
            }
        }
    return answer


def _make_webhook(callback: CallbackReference, examples: Mapping[str, Any]) -> Schema:
    example = examples[callback.name]
    return {
        "operationId": callback.name,
        "summary": callback.summary,
        "description": f"{strip_links(callback.text)} Check one of the two signatures before you act on it.",
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": True,
                "description": text,
                "schema": {"type": "string"},
                "example": example["headers"][name],
            }
            for name, text in HEADERS.items()
        ],
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": refer(capitalize(callback.name)), "example": example["body"]}},
        },
        "responses": {
            "200": {
                "description": "Accepted: HTTP status 200 and the word `success`, within 10 seconds. "
                "Everything else is a failed attempt, and the callback is sent again later.",
                "content": {"text/plain": {"schema": {"type": "string"}, "example": "success"}},
            }
        },
    }


def _name_response(code: int) -> str:
    return "".join(word.capitalize() for word in CODES[code].name.split("_"))


def _make_responses() -> dict[str, Schema]:
    """Answers with an HTTP status of their own."""
    own = {
        _name_response(code): _make_response(code, row.meaning)
        for code, row in CODES.items()
        if row.http_status != 200
    }
    malformed = "These bytes are not an HTTP/1.1 request. The connection is closed."
    return {"Malformed": _make_response(BODY_MALFORMED, malformed), **own}


def _make_response(code: int, text: str) -> Schema:
    headers = {"X-Request-Id": refer("RequestId", "headers")}
    if code in _HEADERS_OF_CODES:
        component = _HEADERS_OF_CODES[code]
        headers["Allow" if component == "Allow" else "Retry-After"] = refer(component, "headers")
    content = {JSON: {"schema": refer("Refusal"), "example": show_refusal(code)}}
    return {"description": text, "headers": headers, "content": content}


def _make_headers() -> dict[str, Schema]:
    return {
        "RequestId": {
            "description": "Store it: with it the operator finds the request in the logs.",
            "schema": {"type": "string"},
        },
        "RetryAfter": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}},
        "Allow": {"description": "The method that this path accepts.", "schema": {"type": "string"}},
    }


def _make_refusal_examples() -> dict[str, Schema]:
    return {
        f"Code{code}": {"summary": row.meaning, "value": show_refusal(code)}
        for code, row in CODES.items()
        if code != SUCCESS and row.http_status == 200
    }
