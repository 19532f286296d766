"""A real browser for the pages: screens, languages and themes. Any error that the browser reports fails
the test.

Rules: each module starts its own browser, because the browser's event loop would block `asyncio.run` in other
modules. What a test awaits within the service goes through `platform`. Without a browser these tests are
skipped; in CI they fail. A failed test leaves screenshots in `shots/`.
"""

import base64
import os
import re
from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright
from tests.browser.axe import find_barriers
from tests.journeys import conftest as journeys
from tests.tools import require_tool

ROOT: Final = Path(__file__).parents[2]
SHOTS: Final = Path(__file__).with_name("shots")
IMAGES: Final = ROOT / "docs/images"
MAX_IMAGE_BYTES: Final = 150_000
TIMEOUT_MS: Final = 20_000

# The running service of the journeys' tests.
clock, platform, own_platform, shop = journeys.clock, journeys.platform, journeys.own_platform, journeys.shop


@dataclass(frozen=True, slots=True)
class Screen:
    """The size and kind of a screen."""

    name: str
    width: int
    height: int
    scale: int
    touch: bool


PHONE: Final = Screen("phone", 390, 844, 2, touch=True)
DESKTOP: Final = Screen("desktop", 1440, 900, 1, touch=False)
NARROW: Final = Screen("narrow", 320, 640, 1, touch=True)
SCREENS: Final = (PHONE, DESKTOP)
LANGUAGES: Final = ("en", "zh-CN")
THEMES: Final = ("light", "dark")


@dataclass
class Visits:
    """Opens pages for one test and records the errors that the browser reports."""

    browser: Browser
    contexts: list[BrowserContext] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    def open(
        self,
        screen: Screen = DESKTOP,
        *,
        language: str = "en",
        theme: str = "light",
        url: str | None = None,
        **context: Any,
    ) -> Page:
        """A page of a new visitor, still empty. `url` is the base of relative addresses."""
        options: dict[str, Any] = {"reduced_motion": "reduce", "timezone_id": "UTC", **context}
        if not self.is_firefox:
            options |= {"has_touch": screen.touch, "is_mobile": screen.touch}
        made = self.browser.new_context(
            base_url=url,
            viewport={"width": screen.width, "height": screen.height},
            device_scale_factor=screen.scale,
            locale=language,
            color_scheme="dark" if theme == "dark" else "light",
            **options,
        )
        made.set_default_timeout(TIMEOUT_MS)
        self.contexts.append(made)
        page = made.new_page()
        page.on("console", self._note_message)
        page.on("pageerror", lambda error: self.complaints.append(f"error in the page: {error}"))
        return page

    @property
    def is_firefox(self) -> bool:
        """Whether the pages are shown by Firefox, which does not emulate phones."""
        return self.browser.browser_type.name == "firefox"

    def allow(self, pattern: str) -> None:
        """Expect an error that matches this regular expression."""
        self.allowed.append(pattern)

    def judge(self) -> None:
        """Fail if the browser reported a script error or a violation of the content policy."""
        left = [told for told in self.complaints if not any(re.search(known, told) for known in self.allowed)]
        assert not left, "the browser complains:\n" + "\n".join(left)

    def keep_pictures(self, name: str) -> None:
        """Save a screenshot of every page."""
        SHOTS.mkdir(exist_ok=True)
        pages = [page for context in self.contexts for page in context.pages]
        for at, page in enumerate(pages):
            page.screenshot(path=SHOTS / f"{name}-{at}.png", full_page=True)

    def close(self) -> None:
        """Close every page."""
        for context in self.contexts:
            context.close()

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            where = message.location.get("url", "")
            self.complaints.append(f"{message.type}: {message.text} ({where})")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The module's browser. `test_firefox` has another."""
    require_tool("playwright")
    found = require_tool("chromium-headless-shell")
    # Chromium's sandbox does not work for root. Here it shows only our own pages.
    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=arguments)
        try:
            yield launched
        finally:
            launched.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell the fixtures whether the test failed."""
    report = yield
    if report.when == "call":
        item.stash[_FAILED] = report.failed
    return report


_FAILED: Final = pytest.StashKey[bool]()


@pytest.fixture
def visits(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Visits]:
    """Opens pages. Errors that the browser reported fail the test at its end."""
    made = Visits(browser)
    try:
        yield made
        failed = request.node.stash.get(_FAILED, False)
        if failed or made.complaints:
            made.keep_pictures(re.sub(r"[^A-Za-z0-9]+", "-", request.node.name)[:100])
        if not failed:
            made.judge()
    finally:
        made.close()


@pytest.fixture
def phone(visits: Visits) -> Page:
    """An empty page on a phone."""
    return visits.open(PHONE)


@pytest.fixture
def desktop(visits: Visits) -> Page:
    """An empty page on a desktop screen."""
    return visits.open(DESKTOP)


CheckAxe = Callable[..., None]


@pytest.fixture
def check_axe() -> CheckAxe:
    """Fails on every accessibility finding of axe, also a minor one."""
    return judge_page


def judge_page(page: Page, within: str = "html", *, but: Collection[str] = ()) -> None:
    """See `check_axe`. `within` selects the part to check, `but` names rules that are left out."""
    found = find_barriers(page, within, but=but)
    assert not found, f"{page.url} is hard to use:\n" + "\n".join(found)


Shot = Callable[[Page, str], None]


@pytest.fixture
def shot() -> Shot:
    """Saves a screenshot for the documents if WALLET_DOCS_IMAGES=1 is set. Otherwise does nothing."""
    return keep_image if os.environ.get("WALLET_DOCS_IMAGES") == "1" else lambda page, name: None


def keep_image(page: Page, name: str) -> None:
    """See `shot`."""
    assert re.fullmatch(r"[a-z0-9-]+", name), "a picture's name has small letters, digits and hyphens"
    IMAGES.mkdir(parents=True, exist_ok=True)
    session = page.context.new_cdp_session(page)
    for quality in (90, 80, 70, 55):
        taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": quality})
        content = base64.b64decode(taken["data"])
        if len(content) <= MAX_IMAGE_BYTES:
            (IMAGES / f"{name}.webp").write_bytes(content)
            return
    pytest.fail(f"the picture {name} stays above {MAX_IMAGE_BYTES} bytes")
