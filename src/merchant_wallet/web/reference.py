"""The description of the interface for everybody: the OpenAPI document.

Rules: nobody signs in, and no request reads the database. The document describes this service: its address,
its chains, and whether it is a sandbox.
"""

from functools import cache

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from merchant_wallet.api.reference.openapi import build_document
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.site import Site

DOCUMENT_PATH = "/openapi.json"
PAGE_PATH = "/docs/api"


def build_site(context: PageContext) -> Site:
    """The site with the document."""
    return Site(context, (DOCUMENT_PATH,), "", [_make_document_route(context)])


def _make_document_route(context: PageContext) -> Route:
    @cache
    def write() -> bytes:
        sandbox = context.settings.sandbox
        return msgspec.json.encode(build_document(context.public_url, context.chains, sandbox=sandbox))

    async def show(request: Request) -> Response:
        headers = {"cache-control": "no-cache", "x-content-type-options": "nosniff"}
        return Response(write(), headers=headers, media_type="application/json")

    return Route(DOCUMENT_PATH, show, methods=["GET"])
