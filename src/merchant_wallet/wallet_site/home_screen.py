"""The wallet as an icon on a phone's start screen.

Rules:
- The manifest needs the session, so it says nothing to strangers. Neither it nor its start page has the
  wallet's link: the icon leads to `/wallet/start/…`, which names the merchant alone.
- The start page leads to the wallet while the session lasts, and then to the merchant, who gives a new link.
- There is no service worker: nothing of a wallet is stored in the browser.
"""

from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from merchant_wallet.wallet_site.brand import ICON_SIDES, find_icon_url, find_theme_colour
from merchant_wallet.wallet_site.request import (
    COOKIE,
    HOME,
    Connection,
    WalletRequest,
    find_cell,
    open_request,
    show_session_ended,
)
from merchant_wallet.wallet_site.start import make_start_token, read_start
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.forms import Form

START: Final = "/wallet/start"
_SHORT_NAME: Final = 12
_BACKGROUND: Final = "#f3f6f6"


async def show_manifest(request: WalletRequest, conn: Connection) -> Response:
    """The web app manifest of the session's merchant."""
    brand, start = request.brand, f"{START}/{make_start_token(request.context, request.merchant_id)}"
    name = request.wallet.merchant_name
    manifest = {
        "id": start,
        "start_url": start,
        "scope": HOME,
        "name": name,
        "short_name": name[:_SHORT_NAME],
        "lang": str(request.client.language),
        "display": "standalone",
        "background_color": _BACKGROUND,
        "theme_color": find_theme_colour(brand),
        "icons": _list_icons(request),
    }
    response = Response(msgspec.json.encode(manifest), media_type="application/manifest+json")
    response.headers.update(request.context.responses.headers(request.wallet.frame_origins))
    return response


def make_start_route(context: PageContext) -> Route:
    """The page that a phone's icon opens."""

    async def start(http: Request) -> Response:
        owner = context.find_owner(http, http.cookies.get(COOKIE, ""))
        async with context.take_with_cells(owner) as (home, cells):
            known = await read_start(http, context, home, http.path_params["token"])
            if known is None:
                raise HTTPException(404)
            cell = await find_cell(http, cells)
            request = None if cell is None else await open_request(http, context, home, cell, Form([]))
        if request is None:
            return show_session_ended(http, context, known)
        return context.responses.redirect(HOME, request.wallet.frame_origins)

    return Route(f"{START}/{{token}}", start, methods=["GET"])


def _list_icons(request: WalletRequest) -> list[dict[str, Any]]:
    return [
        {
            "src": find_icon_url(request.brand, side),
            "sizes": f"{side}x{side}",
            "type": "image/png",
            "purpose": purpose,
        }
        for side in ICON_SIDES[1:]
        for purpose in ("any", "maskable")
    ]
