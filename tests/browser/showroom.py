"""Shows templates with sample values in the browser, with the headers of real pages.

Rules: no server listens. The browser's requests are answered before they leave it.
"""

import json
import tomllib
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Final

import segno
from jinja2 import ChoiceLoader, FileSystemLoader
from markupsafe import Markup
from playwright.sync_api import Page, Route
from tests.browser.conftest import DESKTOP, Screen, Visits

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.web import static
from merchant_wallet.web.languages import Language, translate
from merchant_wallet.web.responses import Responses
from merchant_wallet.web.templates import Templates

# Browsers treat localhost as secure, so the clipboard works as with https.
ORIGIN: Final = "http://localhost:9"
GALLERY: Final = Path(__file__).with_name("gallery")
WORDS: Final[Mapping[str, str]] = tomllib.loads((GALLERY / "words.toml").read_text(encoding="utf-8"))
FIRST_DAY_MS: Final = 1_762_905_600_000
PAID_UNITS: Final = (1840, 2210, 1975, 2630, 0, 3120, 2890, 3340, 2760, 4105)


class Showroom:
    """Shows templates in a browser and records the pages' further requests."""

    def __init__(self, visits: Visits) -> None:
        self._visits = visits
        self._templates = _make_templates()
        self._headers = Responses(self._templates, secure=False).headers()
        self._files = {file.url: file for file in static.read_files().values()}
        self.asked: list[tuple[str, str, str | None]] = []
        self.answers: dict[str, Callable[[Route], None]] = {}

    def show(
        self,
        name: str,
        screen: Screen = DESKTOP,
        *,
        language: str = "en",
        theme: str = "auto",
        scheme: str = "light",
        path: str = "/",
        **values: object,
    ) -> Page:
        """Show a template as a page. `theme` is the visitor's choice, `scheme` the device's setting."""
        text = self._templates.render(
            name, Language(language), **{**_samples(language), "theme": theme, **values}
        )
        page = self._visits.open(screen, language=language, theme=scheme)
        page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=ORIGIN)
        page.context.route(f"{ORIGIN}/**", partial(self._answer, path, text))
        page.goto(ORIGIN + path)
        return page

    def _answer(self, path: str, text: str, route: Route) -> None:
        asked = route.request.url.removeprefix(ORIGIN)
        if asked in self._files:
            file = self._files[asked]
            route.fulfill(body=file.content, content_type=file.media_type)
        elif asked == path and route.request.method == "GET":
            headers = {**self._headers, "content-type": "text/html; charset=utf-8"}
            route.fulfill(body=text, headers=headers)
        else:
            self.asked.append((route.request.method, asked, route.request.post_data))
            self.answers.get(asked, _answer_empty)(route)


@cache
def _make_templates() -> Templates:
    templates = Templates()
    environment = templates.environment
    assert environment.loader is not None
    environment.loader = ChoiceLoader([environment.loader, FileSystemLoader(GALLERY)])
    return templates


def _answer_empty(route: Route) -> None:
    route.fulfill(status=204)


def answer_json(content: object) -> Callable[[Route], None]:
    """A route handler that answers with JSON."""
    return lambda route: route.fulfill(body=json.dumps(content), content_type="application/json")


def _say(language: str, text: str, **values: object) -> str:
    if language == "zh-CN" and text in WORDS:
        return WORDS[text].format(**values)
    return translate(Language(language), text, **values)


def _samples(language: str) -> dict[str, object]:
    say = partial(_say, language)
    code = segno.make("TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC", error="m")
    days = [FIRST_DAY_MS + at * DAY_MS for at in range(len(PAID_UNITS))]
    paid = {"label": say("Withdrawals"), "values": [coins * 1_000_000 for coins in PAID_UNITS]}
    counts = {"label": say("Deposits"), "values": [coins // 100 for coins in PAID_UNITS]}
    return {
        "_": say,
        "csrf": "0123456789abcdef0123456789abcdef",
        "live_url": "",
        "qr": Markup(code.svg_inline(scale=1, border=0, omitsize=True)),
        "points": {"at": days, "currency": "USDT", "series": [paid]},
        "counts": {"at": days, "currency": "", "series": [counts]},
    }
