"""The start page at `/`: what this is, and where the console, the documentation and the interface are.

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
from merchant_wallet.web.languages import N_, Language

PATH: Final = "/"
QUICK_STARTS: Final = {
    Language.EN: f"{documentation.PATH}/quick-start/",
    Language.ZH: f"{documentation.PATH}/zh/quick-start/",
}
_CONSOLE: Final = ("/console", N_("Console"), N_("for operators, auditors and the merchants' staff"))
_GUIDES: Final = (documentation.PATH, N_("Documentation"), N_("how to call the interface"))
"""It is here if the documentation was built."""
_INTERFACE: Final = (
    (
        reference.PAGE_PATH,
        N_("API explorer"),
        N_("every operation and code; in a sandbox it signs and sends"),
    ),
    (reference.DOCUMENT_PATH, "OpenAPI", N_("the same for programs")),
)
"""The path, the name and the use of each."""


def make_route(context: PageContext, admit: Callable[[Request], int], *, has_guides: bool) -> Route:
    """The route. `admit` returns 0, or the seconds that the client must wait."""

    def list_links(language: Language) -> tuple[tuple[str, str, str], ...]:
        if not has_guides:
            return (_CONSOLE, *_INTERFACE)
        quick_start = QUICK_STARTS[language], N_("Quick start"), N_("the first payment, in five languages")
        return (_CONSOLE, quick_start, _GUIDES, *_INTERFACE)

    async def show(request: Request) -> Response:
        if wait_s := admit(request):
            raise HTTPException(429, headers={"retry-after": str(wait_s)})
        client = context.client(request)
        shown = {
            "links": list_links(client.language),
            "has_guides": has_guides,
            "inline": reference.show_inline,
        }
        values = {**shown, "back": PATH, "theme": client.theme, "csrf": ""}
        return context.responses.page("web/start.html", client.language, values)

    return Route(PATH, show, methods=["GET"])
