"""The files that are made of the interface's description: its examples, the OpenAPI document, collections."""

import json
from pathlib import Path
from typing import Any, Final

from scripts.documents.collection_files import write_collections
from scripts.documents.pages import ROOT
from scripts.documents.story import Example, Story

from merchant_wallet.api.reference.callbacks import DEPOSITED, HEADERS, ORDER, TESTED
from merchant_wallet.api.reference.openapi import EXAMPLES, build_document, read_examples, write_document
from merchant_wallet.callbacks.payloads import Payload

DOCUMENT: Final = ROOT / "docs" / "openapi.json"


def write_examples(story: Story) -> dict[Path, str]:
    """The file of examples, from a run of the story."""
    examples = {
        "operations": {name: _show_example(example) for name, example in story.operations.items()},
        "controls": {name: _show_example(example) for name, example in story.controls.items()},
        "callbacks": {
            ORDER.name: _show_callback(story.callback),
            DEPOSITED.name: _show_callback(story.deposit_callback),
            TESTED.name: _show_callback(story.test_callback),
        },
    }
    return {EXAMPLES: json.dumps(examples, indent=1, ensure_ascii=False) + "\n"}


def write_interface() -> dict[Path, str]:
    """The other files, with the examples as they are in their file now."""
    read_examples.cache_clear()
    return {DOCUMENT: write_document(build_document()), **write_collections()}


def _show_example(example: Example) -> dict[str, Any]:
    return {"request": json.loads(example.body), "answer": json.loads(example.answer)}


def _show_callback(payload: Payload) -> dict[str, Any]:
    headers = {name.decode(): value.decode() for name, value in payload.headers}
    return {"headers": {name: headers[name] for name in HEADERS}, "body": json.loads(payload.body)}
