"""A page calls itself live only while it hears from the server. A real service is frozen and resumed."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import DESKTOP, LANGUAGES, PHONE, Visits
from tests.browser.looks import require_looks
from tests.browser.test_console import people
from tests.browser.test_wallet import Customer
from tests.console.conftest import People
from tests.console.test_withdrawals import QUEUE, Till
from tests.journeys.conftest import MASTER_KEY, Platform
from tests.waits import TIMEOUT_S

from merchant_wallet.console.session_cookie import COOKIE

__all__ = ["people"]

PROGRAM = Path(sys.executable).with_name("merchant-wallet")
TIMEOUT_MS = 60_000
"""The deadline for what must happen. The test goes on as soon as it has happened."""
LATE = {"en": "not live since", "zh-CN": "停止更新于"}


@dataclass
class Service:
    """A web side in its own process, on the platform's database."""

    process: subprocess.Popen[str]
    url: str

    def stand_still(self) -> None:
        """Freeze the process: it neither answers nor closes a connection."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@pytest.fixture(scope="module")
def service(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """`merchant-wallet serve` on the platform's database."""
    data = tmp_path_factory.mktemp("service")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WALLET_")}
    process = subprocess.Popen(
        [str(PROGRAM), "serve", "--data", str(data)],
        env={
            **kept,
            "WALLET_DATABASE_URL": platform.url,
            "WALLET_MASTER_KEY": MASTER_KEY.hex(),
            "WALLET_SANDBOX": "true",
            "WALLET_PORT": "0",
            "WALLET_PAGE_RATE_LIMIT": "0",
            "WALLET_LOG_LEVEL": "warning",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Service(process, _wait_until_ready(process))
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.communicate(timeout=60)


def _wait_until_ready(process: subprocess.Popen[str]) -> str:
    """The URL that the service prints."""
    assert process.stdout is not None
    giving_up = threading.Timer(TIMEOUT_S, process.kill)
    giving_up.start()
    try:
        for line in process.stdout:
            if "http://" in line:
                return "http://" + line.partition("http://")[2].split()[0]
    finally:
        giving_up.cancel()
    pytest.fail("the service ended before it was ready")


@pytest.fixture
def running(service: Service) -> Iterator[Service]:
    """The service, resumed after the test in any case."""
    yield service
    service.go_on()


def open_wallet(customer: Customer, service: Service, page: Page) -> None:
    """Follow a fresh link to the service in the other process."""
    link = str(customer.shop.user("lin-7")["url"])
    page.goto(link.replace(customer.shop.platform.address, service.url))


def open_console(visits: Visits, people: People, service: Service, path: str, language: str) -> Page:
    """A console page of the service in the other process."""
    page = visits.open(DESKTOP, url=service.url, language=language)
    cookie = people.signed_in("owner").http.cookies[COOKIE]
    page.context.add_cookies(
        [{"name": COOKIE, "value": cookie, "url": f"{service.url}/console", "httpOnly": True}]
    )
    page.goto(path)
    return page


def expect_live(page: Page) -> None:
    expect(page.locator("body")).to_have_attribute("data-live-state", "open", timeout=TIMEOUT_MS)
    expect(page.locator(".live-on")).to_be_visible()
    expect(page.locator(".live-late")).to_be_hidden()


def expect_late(page: Page, language: str) -> None:
    """The page says, in its language, since when it is not live."""
    expect(page.locator(".live-late")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.locator(".live-late")).to_contain_text(LATE[language])
    expect(page.locator(".live-on")).to_be_hidden()


def test_a_wallet_whose_server_stands_still_says_since_when_it_is_not_live_and_how_old_its_balance_is(
    visits: Visits, platform: Platform, running: Service
) -> None:
    customer = Customer(platform)
    customer.top_up("12.5")
    pages = {language: visits.open(DESKTOP, language=language) for language in LANGUAGES}
    for page in pages.values():
        open_wallet(customer, running, page)
        expect_live(page)
    running.stand_still()
    customer.top_up("1")
    for language, page in pages.items():
        expect_late(page, language)
        age = page.locator("[data-live-age]")
        expect(age).to_be_visible()
        expect(age).to_contain_text("seconds ago" if language == "en" else "秒钟前")
        expect(page.locator(".hero-balance")).to_contain_text("12.50")
        require_looks(page, colours=language == "en")
    running.go_on()
    for page in pages.values():
        expect_live(page)
        expect(page.locator("[data-live-age]")).to_be_hidden()
        expect(page.locator(".hero-balance")).to_contain_text("13.50", timeout=TIMEOUT_MS)


def test_a_console_whose_server_stands_still_is_not_live(
    visits: Visits, people: People, platform: Platform, running: Service
) -> None:
    # htmx reports requests that get no answer.
    visits.allow("htmx:")
    shop = platform.open_merchant(approval_limit="0")
    shop.fund("USDT", "500")
    order = Till(platform, shop).order("60")
    pages = [
        (language, open_console(visits, people, running, path, language))
        for language in LANGUAGES
        for path in ("/console", f"{QUEUE}/{order}")
    ]
    for _, page in pages:
        expect_live(page)
    running.stand_still()
    for language, page in pages:
        expect_late(page, language)
        # It is the same sign on both pages.
        if QUEUE in page.url:
            require_looks(page, colours=language == "en")
    running.go_on()
    for _, page in pages:
        expect_live(page)


def test_a_page_that_opens_while_the_server_stands_still_never_was_live(
    visits: Visits, platform: Platform, running: Service
) -> None:
    customer = Customer(platform)
    page = visits.open(PHONE)
    # The stream is requested and never answered.
    page.route("**/wallet/events*", lambda route: None)
    open_wallet(customer, running, page)
    expect(page.locator(".live-late")).to_be_visible(timeout=TIMEOUT_MS)
    page.unroute("**/wallet/events*")
    expect_live(page)
