"""The site in a real browser, served as the service does it: search, pictures, phones, both themes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser import conftest as shared
from tests.browser.conftest import DESKTOP, NARROW, TIMEOUT_MS, Visits
from tests.browser.looks import require_looks
from tests.conftest import TEMPLATE, SharedPostgres
from tests.journeys.conftest import Platform

from merchant_wallet.web import documentation

# The theme gives each block of code a landmark for its button, and names none of them.
THEMES_OWN = ("landmark-unique",)
browser, visits = shared.browser, shared.visits
PAGES = (
    "",
    "operations/exchange/",
    "codes/40101/",
    "concepts/orders/",
    "reliability/idempotency/",
    "going-live/",
)


@pytest.fixture(scope="module")
def service(built: Path, postgres: SharedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service into which the site is built."""
    with pytest.MonkeyPatch.context() as patch, postgres.database(TEMPLATE) as url:
        patch.setattr(documentation, "PACKED", built / "documentation.zip")
        platform = Platform(url, tmp_path_factory.mktemp("service"))
        platform.start()
        try:
            yield platform.address
        finally:
            platform.ask_to_stop()
            platform.join()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pages_fit_their_screen_and_are_accessible(visits: Visits, service: str, language: str) -> None:
    page = visits.open(DESKTOP, url=service)
    for path in PAGES:
        page.goto(f"/docs/{'' if language == 'en' else 'zh/'}{path}")
        require_looks(page, NARROW, within="article", but=THEMES_OWN, colours=language == "en")


@pytest.mark.parametrize(
    ("home", "finds"),
    [
        (
            "",
            {
                "40101": "40101",
                "idempotency": "Idempotency and retries",
                "notifyUrl": "createMerchantWithdrawOrder",
                "withdraw fee": "getWithdrawFee",
                "getWithdrawFee": "getWithdrawFee",
            },
        ),
        (
            "zh/",
            {
                "幂等": "幂等与重试",
                "回调的顺序": "回调的顺序与重复",
                "提现手续费": "getWithdrawFee",
                "时间戳": "时间戳与 nonce",
            },
        ),
    ],
    ids=["en", "zh"],
)
def test_the_search_finds_it_without_another_host(
    visits: Visits, service: str, home: str, finds: dict[str, str]
) -> None:
    page = visits.open(url=service)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"/docs/{home}")
    titles = page.locator(".md-search-result__title, .md-search-result h1, .md-search-result h2")
    for words, found in finds.items():
        _search(page, words)
        _wait_for(page, titles.filter(has_text=found).first)
    assert [url for url in asked if not url.startswith(service)] == []


def _search(page: Page, words: str) -> None:
    page.locator(".md-search__input").click()
    page.locator(".md-search__input").clear()
    page.locator(".md-search__input").press_sequentially(words)


def _wait_for(page: Page, result: Locator) -> None:
    """Wait for a result. What was typed before the index had arrived is searched at the next key."""
    for _ in range(TIMEOUT_MS // 500):
        if result.is_visible():
            return
        page.locator(".md-search__input").press("End")
        page.wait_for_timeout(500)
    expect(result).to_be_visible()


def test_the_language_link_leads_to_the_same_page(visits: Visits, service: str) -> None:
    page = visits.open(url=service)
    page.goto("/docs/codes/42200/")
    page.get_by_role("link", name="中文").click()
    expect(page).to_have_url(f"{service}/docs/zh/codes/42200/")
    page.get_by_role("link", name="English").click()
    expect(page).to_have_url(f"{service}/docs/codes/42200/")


def test_a_reader_of_chinese_enters_the_chinese_pages(visits: Visits, service: str) -> None:
    page = visits.open(language="zh-CN", url=service)
    page.goto("/docs")
    expect(page).to_have_url(f"{service}/docs/zh/")


def test_the_page_that_signs_and_sends_is_one_click_away(visits: Visits, service: str) -> None:
    page = visits.open(url=service)
    page.goto("/docs/")
    page.get_by_role("link", name="API explorer").first.click()
    expect(page).to_have_url(f"{service}/docs/api")
