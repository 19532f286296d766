"""The start page at `/`: where the console, the documentation, the interface and the health are.

Rules: nobody signs in, and no request reads the database. Clients that request too much have to wait.
"""

from collections.abc import Callable
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from merchant_wallet.web import documentation, reference
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.languages import N_

PATH: Final = "/"
LINKS: Final = (
    ("/console", N_("Console"), N_("for operators, auditors and the merchants' staff")),
    (documentation.PATH, N_("Documentation"), N_("how to call the interface")),
    (reference.PAGE_PATH, N_("Interface"), N_("every operation and code; in a sandbox it signs and sends")),
    (reference.DOCUMENT_PATH, "OpenAPI", N_("the same for programs")),
    ("/healthz", N_("Health"), N_("whether this process answers, and in which mode")),
)
"""The path, the name and the use of each."""


def make_route(context: PageContext, admit: Callable[[Request], int]) -> Route:
    """The route. `admit` returns 0, or the seconds that the client must wait."""

    async def show(request: Request) -> Response:
        if wait_s := admit(request):
            raise HTTPException(429, headers={"retry-after": str(wait_s)})
        client = context.client(request)
        values = {"links": LINKS, "theme": client.theme, "csrf": ""}
        return context.responses.page("web/start.html", client.language, values)

    return Route(PATH, show, methods=["GET"])
