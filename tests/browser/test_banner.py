"""Banners in a real browser: the sandbox strip on every page, and the console's banner about stopped
payouts.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import DESKTOP, NARROW, PHONE, Screen, Visits
from tests.browser.looks import changing, each_language, list_excess, require_looks, show
from tests.browser.test_console import open_signed_in, people
from tests.browser.test_wallet import PAGES, Customer
from tests.console.conftest import People
from tests.console.test_banner import CAUSE, PAYOUTS, all_goes_on, hold, stop
from tests.console.test_withdrawals import QUEUE, Till
from tests.journeys.conftest import Platform

__all__ = ["all_goes_on", "people"]

WORKING = True
SETTINGS = {"reconcile_interval_s": 0}
STOPPED = {"en": "Payouts on TRC20 are stopped", "zh-CN": "TRC20 付款已停止"}
SANDBOX = {"en": "No real money moves here", "zh-CN": "此处没有真实资金"}


@pytest.fixture(scope="module")
def till(platform: Platform) -> Till:
    """A merchant with orders in the queue."""
    shop = platform.open_merchant(name="Harbour Tea & Coffee", approval_limit="50", withdraw_fee_min="1")
    shop.fund("USDT", "184250.75")
    return Till(platform, shop)


def assert_fits(page: Page, screen: Screen) -> None:
    """The page is not wider than the screen."""
    excess = list_excess(page, screen)
    assert not excess, f"{page.url}: {excess}"


def assert_in_view(page: Page, part: str) -> None:
    """A part of the page is in view on each screen, and the page is not wider."""
    with changing(page) as device:
        for screen in (DESKTOP, PHONE, NARROW):
            show(page, device, screen, "light")
            expect(page.locator(part)).to_be_in_viewport()
            assert_fits(page, screen)


@each_language
def test_every_page_of_both_sites_says_that_this_is_the_sandbox(
    visits: Visits,
    people: People,
    platform: Platform,
    language: str,
) -> None:
    visits.allow("status of 40[34]")
    wallet = Customer(platform).open(visits.open(DESKTOP, language=language))
    for path in (*PAGES, "/wallet/nothing", "/w/nobody"):
        wallet.goto(platform.address + path)
        expect(wallet.locator(".sandbox-strip")).to_contain_text(SANDBOX[language])
        expect(wallet.locator(".sandbox-strip")).to_be_in_viewport()
        # One page of each layout.
        if path in (PAGES[0], "/wallet/nothing"):
            assert_in_view(wallet, ".sandbox-strip")
    console = open_signed_in(visits, people.signed_in("owner"), language=language)
    for path in ("/console", QUEUE, "/console/nothing", "/console/account"):
        console.goto(path)
        expect(console.locator(".sandbox-strip")).to_contain_text(SANDBOX[language])
        expect(console.locator(".sandbox-strip")).to_be_in_viewport()
        if path in (QUEUE, "/console/nothing"):
            assert_in_view(console, ".sandbox-strip")
    console.goto("/console")
    console.mouse.wheel(0, 5_000)
    expect(console.locator(".sandbox-strip")).to_be_in_viewport()
    require_looks(console, NARROW, colours=language == "en")
    console.context.clear_cookies()
    console.goto("/console/sign-in")
    expect(console.locator(".sandbox-strip")).to_contain_text(SANDBOX[language])
    console.emulate_media(media="print")
    expect(console.locator(".sandbox-strip")).to_be_visible()


@each_language
def test_a_stop_is_shown_on_the_page_before_anybody_approves(
    visits: Visits,
    people: People,
    till: Till,
    language: str,
) -> None:
    order, held = till.order("60", chain="TRC20"), till.order("7200", chain="TRC20")
    hold(till, held, obstacle_kind="funds", obstacle_cause="the hot wallet holds less", obstacle_ms=5)
    stop(till.platform)
    page = open_signed_in(visits, people.signed_in("owner"), language=language)
    for path in ("/console", QUEUE, f"{QUEUE}/all", f"{QUEUE}/{order}", PAYOUTS):
        page.goto(path)
        banner = page.locator(".banner")
        expect(banner).to_contain_text(STOPPED[language])
        expect(banner).to_contain_text(CAUSE)
        assert_in_view(page, ".banner")
    # It is the same banner everywhere, and the pages without it have their own test.
    page.goto(f"{QUEUE}/{order}")
    require_looks(page, NARROW, colours=language == "en")
    page.locator("[data-opens=approve]").click()
    dialog = page.locator("dialog#approve")
    expect(dialog).to_contain_text(STOPPED[language])
    require_looks(page, NARROW, within="dialog[open]", colours=language == "en")


def test_a_stop_appears_on_a_page_that_is_open_and_goes_with_its_end(
    visits: Visits, people: People, till: Till
) -> None:
    page = open_signed_in(visits, people.signed_in("operator"))
    page.goto("/console/debugger")
    expect(page.locator("#banner")).to_be_attached()
    stop(till.platform)
    expect(page.locator(".banner")).to_contain_text("Payouts on TRC20 are stopped", timeout=30_000)
    till.platform.rows("delete from payout_stop")
    expect(page.locator(".banner")).to_have_count(0, timeout=30_000)


def test_an_operator_stops_payouts_and_an_approved_order_says_that_it_waits(
    visits: Visits, people: People, till: Till
) -> None:
    order = till.order("61", chain="TRC20", mcOrderId="INV-STOPPED")
    page = open_signed_in(visits, people.signed_in("operator", name="mei.stops"))
    page.goto(PAYOUTS)
    page.get_by_role("region", name="TRC20").get_by_role("button", name="Stop payouts").click()
    dialog = page.get_by_role("dialog", name="Stop payouts on TRC20?")
    dialog.get_by_label("Reason").fill(CAUSE)
    dialog.get_by_role("button", name="Stop payouts").click()
    expect(page.locator(".toast")).to_contain_text("nothing new is signed on TRC20")
    expect(page.locator(".banner")).to_contain_text("mei.stops")
    page.goto(f"{QUEUE}/{order}")
    page.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog", name="Approve this order?")
    expect(dialog).to_contain_text("It will not be paid at once")
    dialog.get_by_role("button", name="Approve").click()
    expect(page.locator(".toast")).to_contain_text("Approved, and not paid yet")
    expect(page.locator(".timeline [aria-current=step]")).to_contain_text("Payouts on TRC20 are stopped")
    page.goto(f"{QUEUE}/all?id=INV-STOPPED")
    expect(page.get_by_role("row", name="INV-STOPPED")).to_contain_text("Payouts on TRC20 are stopped")
    page.goto(PAYOUTS)
    page.get_by_role("region", name="TRC20").get_by_role("button", name="Resume payouts").click()
    dialog = page.get_by_role("dialog", name="Resume payouts on TRC20?")
    expect(dialog).to_contain_text("Approved orders are then paid at once: 1.")
    dialog.get_by_label("Reason").fill("the node was replaced")
    dialog.get_by_role("button", name="Resume payouts").click()
    expect(page.locator(".toast")).to_contain_text("Payouts on TRC20 go on.")
    expect(page.locator(".banner").get_by_text("Payouts on TRC20 are stopped")).to_have_count(0)


@pytest.fixture(autouse=True)
def end_orders(platform: Platform) -> Iterator[None]:
    """Ends all stops of payouts after each test."""
    yield
    platform.rows("delete from payout_stop")
