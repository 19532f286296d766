"""The client of a page: language, theme, and source address.

Rules: language and theme are in cookies that do not identify the user. Unknown values in them are ignored.
"""

from dataclasses import dataclass
from typing import Final, Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from merchant_wallet.base.trusted_proxies import TrustedProxies
from merchant_wallet.web.csrf import check_origin
from merchant_wallet.web.forms import read_form
from merchant_wallet.web.languages import Language, choose, find_language
from merchant_wallet.web.responses import Responses

PATH: Final = "/look"
LANGUAGE_COOKIE: Final = "lang"
THEME_COOKIE: Final = "theme"
AUTO: Final = "auto"
THEMES: Final = (AUTO, "light", "dark")
_YEAR_S: Final = 31_536_000


@dataclass(frozen=True, slots=True)
class Client:
    """The client of one request. `source` is its address, behind trusted proxies."""

    language: Language
    theme: str
    source: str


def read_client(request: Request, proxies: TrustedProxies, kept_language: str | None = None) -> Client:
    """The client of a request. A choice in the browser overrides the stored one."""
    kept = request.cookies.get(LANGUAGE_COOKIE) or kept_language
    theme = request.cookies.get(THEME_COOKIE, AUTO)
    peer = request.client.host if request.client else ""
    return Client(
        language=choose(request.headers.get("accept-language", ""), kept),
        theme=theme if theme in THEMES else AUTO,
        source=proxies.find(peer, request.headers.getlist("x-forwarded-for")),
    )


def make_route(responses: Responses) -> Route:
    """The route that sets language and theme: fields `language`, `theme` and `back`."""

    async def choose_look(request: Request) -> Response:
        check_origin(request)
        form = await read_form(request)
        response = responses.redirect(read_back(form.text("back")))
        language, theme = find_language(form.text("language")), form.text("theme")
        if language is not None:
            keep_choice(response, LANGUAGE_COOKIE, language, responses)
        if theme in THEMES:
            keep_choice(response, THEME_COOKIE, theme, responses)
        return response

    return Route(PATH, choose_look, methods=["POST"])


def read_back(text: str) -> str:
    """The path of our own in a text, to return to; `/` for any other text."""
    # A text that begins with one slash has neither scheme nor host (RFC 3986 section 4.2).
    ours = text.startswith("/") and not text.startswith(("//", "/\\"))
    # It becomes a header, so only printable ASCII is allowed.
    return text if ours and text.isascii() and text.isprintable() else "/"


def keep_choice(response: Response, name: str, value: str, responses: Responses) -> None:
    """Store a choice in the browser for a year. Over https also inside a frame of another site."""
    site: Literal["none", "lax"] = "none" if responses.secure else "lax"
    response.set_cookie(
        name, value, max_age=_YEAR_S, path="/", httponly=True, samesite=site, secure=responses.secure
    )
    if responses.secure:
        # The standard library supports this attribute from Python 3.14 on.
        head, text = response.raw_headers[-1]
        response.raw_headers[-1] = head, text + b"; Partitioned"
