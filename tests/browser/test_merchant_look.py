"""A merchant's own person changes the look of the wallet pages, and a customer sees it."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import DESKTOP, PHONE, CheckAxe, Screen, Visits
from tests.browser.test_console import open_signed_in
from tests.browser.test_wallet import Customer
from tests.console.conftest import People
from tests.journeys.conftest import Platform
from tests.merchants.test_brand import draw

COLOUR, LINK = "#8a1538", "https://shop.example/wallet"


@pytest.fixture
def people(platform: Platform) -> Iterator[People]:
    """Operators at the console."""
    made = People(platform)
    yield made
    made.leave()


def choose(page: Page, content: bytes, name: str = "logo.png") -> None:
    """Choose a file as the logo."""
    page.locator("#field-logo").set_input_files({"name": name, "mimeType": "image/png", "buffer": content})


@pytest.mark.parametrize(
    ("screen", "theme", "has_scripts"),
    [(PHONE, "light", True), (DESKTOP, "dark", True), (PHONE, "dark", False)],
    ids=["phone", "desktop", "without scripts"],
)
def test_a_merchants_own_person_dresses_the_wallet(
    screen: Screen,
    theme: str,
    has_scripts: bool,
    platform: Platform,
    visits: Visits,
    people: People,
    check_axe: CheckAxe,
) -> None:
    visits.allow("422")
    customer = Customer(platform)
    mei = people.signed_in("merchant", customer.shop.merchant_id)
    page = open_signed_in(visits, mei, screen, theme=theme, has_scripts=has_scripts)
    page.goto(f"/console/merchants/{customer.shop.merchant_id}/settings")
    page.get_by_role("link", name="Change the look").click()
    page.get_by_label("Colour", exact=True).fill(COLOUR)
    choose(page, b"<svg/>")
    page.get_by_role("button", name="Save the look").click()
    expect(page.get_by_text("This is not a PNG or JPEG picture.")).to_be_visible()
    expect(page.get_by_label("Colour", exact=True)).to_have_value(COLOUR)
    if has_scripts:
        check_axe(page)
    choose(page, draw())
    page.get_by_label("Where customers open their wallets").fill(LINK)
    page.get_by_role("button", name="Save the look").click()
    expect(page.get_by_text("Saved. It takes effect from the next request on.")).to_be_visible()
    expect(page.get_by_alt_text("The logo on a light ground")).to_be_visible()
    if has_scripts:
        check_axe(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= screen.width
    wallet = customer.open(visits.open(screen))
    assert wallet.locator(".mark-logo").evaluate("picture => picture.naturalWidth") > 0
    expect(wallet.locator(f"link[href$='{COLOUR[1:]}.css']")).to_have_count(1)
    page.get_by_role("button", name="Remove the logo").click()
    expect(page.get_by_alt_text("The logo on a light ground")).to_have_count(0)
    wallet.reload()
    expect(wallet.locator(".mark-logo")).to_have_count(0)


def test_enter_saves_the_look_and_removes_nothing(platform: Platform, visits: Visits, people: People) -> None:
    customer = Customer(platform)
    mei = people.signed_in("merchant", customer.shop.merchant_id)
    page = open_signed_in(visits, mei)
    page.goto(f"/console/merchants/{customer.shop.merchant_id}/look")
    choose(page, draw())
    page.get_by_label("Colour", exact=True).fill(COLOUR)
    page.keyboard.press("Enter")
    expect(page.get_by_alt_text("The logo on a light ground")).to_be_visible()
    page.get_by_label("Colour", exact=True).fill("#0a3a3f")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile("^Saved"))).to_be_visible()
    expect(page.get_by_alt_text("The logo on a light ground")).to_be_visible()
