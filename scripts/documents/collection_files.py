"""Collections for Postman and Bruno, made from the description of the interface and its examples.

Rules:
- A collection has every operation, in an order in which each succeeds in a sandbox with money.
- Both sign in the same way: `common.js` is a part of both. A secret is in no file.
- What one request needs of another is a variable: an address, an order's ids.
"""

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import Any, Final

from scripts.documents.pages import ROOT

from merchant_wallet.api.reference.openapi import read_examples
from merchant_wallet.api.reference.operations import REFERENCES, OperationReference
from merchant_wallet.api.reference.schemas import strip_links

FOLDER: Final = ROOT / "docs" / "collections"
POSTMAN: Final = FOLDER / "merchant-wallet.postman_collection.json"
BRUNO: Final = FOLDER / "bruno"
SCRIPTS: Final = Path(__file__).with_name("collection_scripts")
BASE_URL: Final = "http://127.0.0.1:8080"
ORDER: Final = (
    "getMerchantCustomer",
    "transferFromMerchantToUser",
    "transferFromUserToMerchant",
    "exchange",
    "getWithdrawFee",
    "createMerchantWithdrawOrder",
    "queryOrder",
    "getMerchantBalance",
)
_VARIABLES: Final = ("mcOrderId", "orderId")
_SCHEMA: Final = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
_ABOUT: Final = (
    "Every operation of the interface. Set baseUrl, appKey and secret (a sandbox's), then run all requests "
    "in their order: a script signs each, and another checks the signature of the answer."
)


def write_collections() -> dict[Path, str]:
    """The files of both collections."""
    return {POSTMAN: _write_postman(), **_write_bruno()}


def list_references() -> list[OperationReference]:
    """The operations in the order of the collections."""
    return sorted(REFERENCES, key=lambda reference: ORDER.index(reference.name))


def read_script(*names: str) -> str:
    """A script of these parts."""
    return "\n".join((SCRIPTS / f"{name}.js").read_text(encoding="utf-8").rstrip() for name in names)


def _make_body(reference: OperationReference) -> dict[str, Any]:
    """The operation's own fields, as in the example. The script adds the others."""
    example = read_examples()["operations"][reference.name]["request"]
    body = {field.name: example[field.name] for field in reference.request if field.name in example}
    body |= {name: f"{{{{{name}}}}}" for name in _VARIABLES if name in body}
    if reference.name == "transferFromMerchantToUser":
        body["address"] = "{{address}}"
    return body


def _write_postman() -> str:
    collection = {
        "info": {
            "_postman_id": str(uuid.uuid5(uuid.NAMESPACE_URL, "merchant-wallet")),
            "name": "merchant-wallet",
            "description": _ABOUT,
            "schema": _SCHEMA,
        },
        "item": [_make_item(reference) for reference in list_references()],
        "event": [
            _make_event("prerequest", read_script("common", "postman_before")),
            _make_event("test", read_script("common", "postman_after")),
        ],
        "variable": [
            {"key": "baseUrl", "value": BASE_URL},
            {"key": "appKey", "value": ""},
            {"key": "secret", "value": "", "type": "secret"},
            *({"key": name, "value": ""} for name in (*_VARIABLES, "address")),
        ],
    }
    return json.dumps(collection, indent=2, ensure_ascii=False) + "\n"


def _make_item(reference: OperationReference) -> dict[str, Any]:
    path = reference.path.strip("/").split("/")
    return {
        "name": reference.name,
        "request": {
            "method": "POST",
            "description": strip_links(reference.text),
            "header": [{"key": "Content-Type", "value": "application/json"}],
            "url": {"raw": f"{{{{baseUrl}}}}/{'/'.join(path)}", "host": ["{{baseUrl}}"], "path": path},
            "body": {
                "mode": "raw",
                "raw": json.dumps(_make_body(reference), indent=2),
                "options": {"raw": {"language": "json"}},
            },
        },
        "response": [],
    }


def _make_event(kind: str, script: str) -> dict[str, Any]:
    return {"listen": kind, "script": {"type": "text/javascript", "exec": script.split("\n")}}


def _write_bruno() -> dict[Path, str]:
    about = {"version": "1", "name": "merchant-wallet", "type": "collection", "ignore": ["node_modules"]}
    environment = _block("vars", [f"baseUrl: {BASE_URL}", "appKey: "]) + "vars:secret [\n  secret\n]\n"
    collection = (
        _block("script:pre-request", read_script("common", "bruno_before").split("\n"))
        + _block("tests", read_script("common", "bruno_after").split("\n"))
        + _block("docs", [_ABOUT])
    )
    requests = {
        BRUNO / f"{reference.name}.bru": _write_request(reference, position)
        for position, reference in enumerate(list_references(), 1)
    }
    return {
        BRUNO / "bruno.json": json.dumps(about, indent=2) + "\n",
        BRUNO / "collection.bru": collection.rstrip("\n") + "\n",
        BRUNO / "environments" / "sandbox.bru": environment,
        **requests,
    }


def _write_request(reference: OperationReference, position: int) -> str:
    parts = (
        _block("meta", [f"name: {reference.name}", "type: http", f"seq: {position}"]),
        _block("post", [f"url: {{{{baseUrl}}}}{reference.path}", "body: json", "auth: none"]),
        _block("body:json", json.dumps(_make_body(reference), indent=2).split("\n")),
        _block("docs", [strip_links(reference.text)]),
    )
    return "".join(parts).rstrip("\n") + "\n"


def _block(name: str, lines: Sequence[str]) -> str:
    return f"{name} {{\n{indent(chr(10).join(lines), '  ')}\n}}\n\n"
