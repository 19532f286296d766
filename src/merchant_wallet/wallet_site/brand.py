"""The files of a merchant's look: its colours as a stylesheet, its logo, and icons for phones.

Rules: a URL names the content, so browsers keep it for ever. It names no merchant and no wallet. Nothing that
was uploaded is served: `merchants.brand` has encoded it again. Clients that request too much have to wait.
"""

import re
from collections import OrderedDict
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from merchant_wallet.merchants import brand
from merchant_wallet.merchants.brand import Brand
from merchant_wallet.web.brand_colours import make_light, make_styles
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.rate_limiter import FILE
from merchant_wallet.web.static import find_url

PATH: Final = "/wallet/brand"
ICON_SIDES: Final = (180, 192, 512)
PLAIN_GROUND: Final = "#ffffff"
PLAIN_THEME: Final = "#0a3a3f"
_FOR_GOOD: Final = "public, max-age=31536000, immutable"
_HEADERS: Final = {
    "cache-control": _FOR_GOOD,
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'",
}
_HEX: Final = re.compile(r"[0-9a-f]{6}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_KEPT: Final = 32


class Logos:
    """The logos that were shown last, so that most requests ask no database."""

    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    async def read(self, http: Request) -> bytes:
        """The file of the logo in a request's path. Raises HTTPException 404."""
        digest = http.path_params["digest"]
        if _DIGEST.fullmatch(digest) is None:
            raise HTTPException(404)
        content = self._kept.get(digest)
        if content is None:
            async with self._context.take_for(http) as home:
                content = await brand.read_logo(home, digest)
            if content is None:
                raise HTTPException(404)
            self._kept[digest] = content
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return content


class Look(NamedTuple):
    """What templates show of a merchant's look. Empty texts: the platform's own."""

    styles_url: str = ""
    logo_url: str = ""
    touch_icon_url: str = ""
    theme_colour: str = PLAIN_THEME
    customer_url: str = ""


def describe(shown: Brand) -> Look:
    """The look for templates."""
    return Look(
        find_styles_url(shown),
        find_logo_url(shown),
        find_icon_url(shown, ICON_SIDES[0]),
        find_theme_colour(shown),
        shown.customer_url or "",
    )


def find_styles_url(shown: Brand) -> str:
    """The URL of the stylesheet of a merchant's colour; empty without one."""
    return f"{PATH}/{shown.brand_colour[1:]}.css" if shown.brand_colour else ""


def find_logo_url(shown: Brand) -> str:
    """The URL of a merchant's logo; empty without one."""
    return f"{PATH}/{shown.brand_logo}.png" if shown.brand_logo else ""


def find_icon_url(shown: Brand, side: int) -> str:
    """The URL of a square icon with a merchant's logo; without one, of the platform's own icon.

    Phones without an icon take a picture of the page, which would keep the balance on the start screen.
    """
    return f"{PATH}/{shown.brand_logo}/{side}.png" if shown.brand_logo else find_url(f"icon-{side}.png")


def find_theme_colour(shown: Brand) -> str:
    """The colour that a phone paints around the page; the platform's without a merchant's own."""
    return make_light(shown.brand_colour)["hero"] if shown.brand_colour else PLAIN_THEME


def make_routes(context: PageContext) -> list[Route]:
    """The routes of all files."""
    logos = Logos(context)

    def admit(http: Request) -> None:
        http.scope[FILE] = True
        if wait_s := context.rate_limiter.admit_file(context.client(http).source):
            raise HTTPException(429, headers={"retry-after": str(wait_s)})

    async def show_styles(http: Request) -> Response:
        admit(http)
        colour = http.path_params["colour"]
        if _HEX.fullmatch(colour) is None:
            raise HTTPException(404)
        return Response(make_styles(f"#{colour}"), headers=_HEADERS, media_type="text/css")

    async def show_logo(http: Request) -> Response:
        admit(http)
        return Response(await logos.read(http), headers=_HEADERS, media_type="image/png")

    async def show_icon(http: Request) -> Response:
        admit(http)
        if (side := int(http.path_params["side"])) not in ICON_SIDES:
            raise HTTPException(404)
        logo = await logos.read(http)
        return Response(
            await brand.make_icon(logo, side, PLAIN_GROUND), headers=_HEADERS, media_type="image/png"
        )

    return [
        Route(f"{PATH}/{{colour}}.css", show_styles, methods=["GET"]),
        Route(f"{PATH}/{{digest}}.png", show_logo, methods=["GET"]),
        Route(f"{PATH}/{{digest}}/{{side:int}}.png", show_icon, methods=["GET"]),
    ]
