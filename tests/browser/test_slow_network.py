"""Pages on a slow line: read before their scripts are there, used without waiting for them, pressed once."""

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Page, Route, expect
from tests.browser.conftest import PHONE, Visits
from tests.browser.test_console import open_signed_in
from tests.browser.test_wallet import Customer
from tests.console.conftest import People
from tests.journeys.conftest import Platform, Shop

WORKING = True
# About what a phone has at the edge of a network.
SLOW: Final = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 20_000}


@pytest.fixture
def people(platform: Platform) -> Iterator[People]:
    """Operators at the console."""
    made = People(platform)
    yield made
    made.leave()


def hold_scripts(page: Page) -> list[Route]:
    """Let no script arrive. Returns the requests for them, which wait."""
    held: list[Route] = []
    page.route("**/*.js", lambda route: held.append(route))
    return held


def slow_down(page: Page) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", SLOW)


def test_the_console_is_read_and_searched_while_its_scripts_are_on_their_way(
    visits: Visits, people: People, shop: Shop
) -> None:
    page = open_signed_in(visits, people.signed_in("owner"), PHONE)
    held = hold_scripts(page)
    page.goto("/console/merchants", wait_until="commit")
    expect(page.get_by_role("heading", level=1)).to_have_text("Merchants")
    field = page.locator("main input[name=q]")
    field.fill(str(shop.merchant_id))
    field.press("Enter")
    expect(page.locator("main").get_by_text(str(shop.merchant_id)).first).to_be_visible()
    assert f"q={shop.merchant_id}" in page.url
    assert held


def test_a_wallet_is_read_while_its_scripts_are_on_their_way(platform: Platform, visits: Visits) -> None:
    customer = Customer(platform)
    customer.top_up("64.5")
    page = visits.open(PHONE)
    held = hold_scripts(page)
    page.goto(customer.shop.user("lin-7")["url"], wait_until="commit")
    expect(page.locator(".hero-balance")).to_contain_text("64.50")
    page.get_by_role("link", name="Security").last.click()
    expect(page.get_by_label("New PIN", exact=True)).to_be_visible()
    assert held


def test_who_presses_twice_on_a_slow_line_is_told_that_it_works_and_acts_once(
    visits: Visits, people: People, shop: Shop
) -> None:
    shop.fund("USDT", "50")
    page = open_signed_in(visits, people.signed_in("owner"), PHONE)
    page.goto(f"/console/merchants/{shop.merchant_id}")
    slow_down(page)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.get_by_role("button", name="Suspend", exact=True).click()
    press = page.get_by_role("dialog").get_by_role("button", name="Suspend")
    press.evaluate("button => { button.click(); button.click(); }")
    expect(page.locator(".toast")).to_contain_text("is suspended")
    assert len(sent) == 1
