"""The description of the interface for everybody: the OpenAPI document, and a page that signs and sends.

Rules: nobody signs in, and no request reads the database. Both describe this service: its address, its
chains, and whether it is a sandbox. The page has no secret: the browser signs, and it sends only in a
sandbox.
"""

import json
import re
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from typing import Any, Final, NamedTuple

import msgspec
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from merchant_wallet.api.reference.callbacks import CALLBACKS, HEADERS, CallbackReference
from merchant_wallet.api.reference.fields import CHAIN, Field
from merchant_wallet.api.reference.openapi import build_document, find_example, read_examples
from merchant_wallet.api.reference.operations import (
    COMMON_FIELDS,
    REFERENCES,
    OperationReference,
    list_codes,
)
from merchant_wallet.api.reference.sandbox_controls import CONTROLS
from merchant_wallet.api.reference.schemas import strip_links
from merchant_wallet.base.codes import CODES
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.languages import N_
from merchant_wallet.web.site import Site

DOCUMENT_PATH: Final = "/openapi.json"
PAGE_PATH: Final = "/docs/api"
_NEVER: Final = N_("not with the same request")
GROUPS: Final = (N_("Transfers"), N_("Withdrawals"), N_("Accounts"), N_("Sandbox"))
_CODE: Final = re.compile(r"`([^`]+)`")


class FieldShown(NamedTuple):
    """A field as the page shows it. `options` are pairs for a selection."""

    name: str
    kind: str
    meaning: str
    at_most: int | None
    is_required: bool
    is_nullable: bool
    choices: Sequence[str]

    @property
    def untold_choices(self) -> Sequence[str]:
        """The choices, if the meaning does not name them."""
        return [] if all(f"`{choice}`" in self.meaning for choice in self.choices) else self.choices

    @property
    def options(self) -> list[tuple[str, str]]:
        """The choices, as a selection has them."""
        return [(choice, choice) for choice in self.choices]


def build_site(context: PageContext) -> Site:
    """The site with the document and the page."""
    routes = [_make_document_route(context), _make_page_route(context)]
    return Site(context, (DOCUMENT_PATH, PAGE_PATH), PAGE_PATH, routes)


def _make_document_route(context: PageContext) -> Route:
    @cache
    def write() -> bytes:
        sandbox = context.settings.sandbox
        return msgspec.json.encode(build_document(context.public_url, context.chains, sandbox=sandbox))

    async def show(request: Request) -> Response:
        headers = {"cache-control": "no-cache", "x-content-type-options": "nosniff"}
        return Response(write(), headers=headers, media_type="application/json")

    return Route(DOCUMENT_PATH, show, methods=["GET"])


def _make_page_route(context: PageContext) -> Route:
    @cache
    def collect() -> dict[str, Any]:
        return {
            "groups": _collect_groups(context.chains, sandbox=context.settings.sandbox),
            "callbacks": [_show_callback(callback, context.chains) for callback in CALLBACKS],
            "codes": [(row, _NEVER if row.retry == "never" else row.retry) for row in CODES.values()],
            "common_fields": _show_fields(COMMON_FIELDS, context.chains),
            "base_url": context.public_url,
            "sends": context.settings.sandbox,
            "inline": show_inline,
            "back": PAGE_PATH,
        }

    async def show(request: Request) -> Response:
        client = context.client(request)
        values = {**collect(), "theme": client.theme, "csrf": ""}
        return context.responses.page("web/reference.html", client.language, values)

    return Route(PAGE_PATH, show, methods=["GET"])


def show_inline(text: str) -> Markup:
    """A text of the tables as HTML: what is in backticks is code, and links into the guide are texts."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(strip_links(text)))))


def _collect_groups(chains: Sequence[str], *, sandbox: bool) -> list[dict[str, Any]]:
    references = (*REFERENCES, *CONTROLS) if sandbox else REFERENCES
    ordered = sorted(references, key=lambda reference: GROUPS.index(reference.group))
    return [
        {"name": name, "operations": [_show_operation(reference, chains) for reference in references]}
        for name, references in groupby(ordered, key=lambda reference: reference.group)
    ]


def _show_operation(reference: OperationReference, chains: Sequence[str]) -> dict[str, Any]:
    example = find_example(reference)
    return {
        "name": reference.name,
        "path": reference.path,
        "summary": reference.summary,
        "text": reference.text,
        "request": _show_fields(reference.request, chains),
        "answer": _show_fields(reference.answer, chains),
        "codes": [CODES[code] for code in list_codes(reference)],
        "sign_length": reference.answer[-1].at_most if reference.answer else None,
        "example": {field.name: example["request"].get(field.name, "") for field in reference.request},
        "request_text": _write_json(example["request"]),
        "answer_text": _write_json(example["answer"]) if reference.answer else None,
    }


def _show_callback(callback: CallbackReference, chains: Sequence[str]) -> dict[str, Any]:
    body = read_examples()["callbacks"][callback.name]["body"]
    return {
        "name": callback.name,
        "summary": callback.summary,
        "text": callback.text,
        "headers": HEADERS,
        "fields": _show_fields(callback.fields, chains),
        "example": _write_json(body),
    }


def _show_fields(fields: Sequence[Field], chains: Sequence[str]) -> list[FieldShown]:
    return [
        FieldShown(
            field.name,
            field.kind,
            field.meaning,
            field.at_most,
            field.is_required,
            field.is_nullable,
            chains if field.values == (CHAIN,) else field.values,
        )
        for field in fields
    ]


def _write_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
