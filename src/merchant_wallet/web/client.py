"""Who looks at a page, as far as any page needs to know: language, theme, and from where.

Rules: language and theme are kept in cookies of their own, which say nothing about who it is; anything else
in them counts as nothing.
"""

from dataclasses import dataclass
from typing import Final, Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from merchant_wallet.base.source_addresses import Network, find_source
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
    """One request's visitor; `source` is the client's address, behind the proxies that are trusted."""

    language: Language
    theme: str
    source: str


def read_client(
    request: Request, trusted_proxies: tuple[Network, ...], kept_language: str | None = None
) -> Client:
    """The visitor of a request. A choice in the browser goes before the one kept for the person."""
    kept = request.cookies.get(LANGUAGE_COOKIE) or kept_language
    theme = request.cookies.get(THEME_COOKIE, AUTO)
    peer = request.client.host if request.client else ""
    return Client(
        language=choose(request.headers.get("accept-language", ""), kept),
        theme=theme if theme in THEMES else AUTO,
        source=find_source(peer, request.headers.getlist("x-forwarded-for"), trusted_proxies),
    )


def make_route(responses: Responses) -> Route:
    """Where the choice of language and theme is sent: fields `language`, `theme` and `back`."""

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
    """The path of ours that a text names, to go back to; `/` when it names anything else."""
    # What begins with one slash has neither scheme nor host (RFC 3986 section 4.2).
    ours = text.startswith("/") and not text.startswith(("//", "/\\"))
    # It goes into a header.
    return text if ours and text.isascii() and text.isprintable() else "/"


def keep_choice(response: Response, name: str, value: str, responses: Responses) -> None:
    """Have the browser keep a choice for a year; over https inside a frame of another site too."""
    site: Literal["none", "lax"] = "none" if responses.secure else "lax"
    response.set_cookie(
        name, value, max_age=_YEAR_S, path="/", httponly=True, samesite=site, secure=responses.secure
    )
    if responses.secure:
        # The standard library knows this word from Python 3.14 on.
        head, text = response.raw_headers[-1]
        response.raw_headers[-1] = head, text + b"; Partitioned"
