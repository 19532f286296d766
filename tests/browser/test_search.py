"""The search box in a browser: suggestions by keyboard and pointer, and a plain form without a script."""

import re

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import DESKTOP, LANGUAGES, PHONE, CheckAxe, Screen, Visits
from tests.browser.looks import require_looks
from tests.browser.test_console import open_signed_in, people
from tests.console.conftest import People
from tests.console.test_withdrawals import OTHER_ADDRESS, Till
from tests.journeys.conftest import Platform

from merchant_wallet.console.session_cookie import COOKIE

__all__ = ["people"]


@pytest.fixture(scope="module")
def till(platform: Platform) -> Till:
    """A merchant with a player and an order to a known address."""
    shop = platform.open_merchant(name="Harbour Tea", approval_limit="50")
    shop.fund("USDT", "5000")
    shop.user("player-seventeen")
    till = Till(platform, shop)
    till.order("1234.5", mcOrderId="INV-2026-0819", address=OTHER_ADDRESS)
    other = platform.open_merchant(name="Quayside Books", approval_limit="50")
    other.fund("USDT", "5000")
    other.user("player-eighteen")
    return till


def box_of(page: Page) -> None:
    page.goto("/console")
    page.keyboard.press("/")
    expect(page.locator("[data-search]")).to_be_focused()


@pytest.mark.parametrize(("screen", "language"), [(DESKTOP, "en"), (PHONE, "zh-CN")], ids=LANGUAGES)
def test_suggestions_are_chosen_by_keyboard_and_told_to_screen_readers(
    visits: Visits,
    people: People,
    till: Till,
    check_axe: CheckAxe,
    screen: Screen,
    language: str,
) -> None:
    page = open_signed_in(visits, people.signed_in("operator"), screen, language=language)
    box_of(page)
    box = page.get_by_role("combobox").first
    expect(box).to_have_attribute("aria-expanded", "false")
    page.keyboard.type("layer-seven")
    options = page.locator("#suggestions [role=option]")
    expect(options).to_have_count(2)
    expect(box).to_have_attribute("aria-expanded", "true")
    expect(options.first).to_contain_text("player-seventeen")
    expect(page.locator("#announcer")).to_have_text(re.compile("^1 "))
    require_looks(page)
    page.keyboard.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    expect(box).to_have_attribute("aria-activedescendant", "suggestion-1")
    check_axe(page)
    page.keyboard.press("ArrowUp")
    assert box.get_attribute("aria-activedescendant") is None
    page.keyboard.press("Escape")
    expect(box).to_have_attribute("aria-expanded", "false")
    expect(box).to_have_value("layer-seven")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/users/\d+$"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("player-seventeen")


def test_what_a_page_shows_shortened_is_found_and_enter_lists_all(
    visits: Visits, people: People, till: Till
) -> None:
    page = open_signed_in(visits, people.signed_in("operator"))
    box_of(page)
    page.keyboard.type(f"{OTHER_ADDRESS[:8]}…{OTHER_ADDRESS[-6:]}")
    option = page.locator("#suggestions [role=option]").first
    expect(option).to_contain_text(OTHER_ADDRESS)
    option.click()
    expect(page.get_by_role("link", name="INV-2026-0819")).to_be_visible()
    box_of(page)
    page.keyboard.type("1,234.50")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Results for “1,234.50”")
    page.get_by_role("link", name="INV-2026-0819").click()
    expect(page).to_have_url(re.compile(r"/console/withdrawals/\d+$"))


def test_a_merchants_person_is_suggested_nothing_of_others(
    visits: Visits, people: People, till: Till
) -> None:
    page = open_signed_in(visits, people.signed_in("merchant", till.shop.merchant_id))
    box_of(page)
    page.keyboard.type("player-")
    options = page.locator("#suggestions [role=option]")
    expect(options).to_have_count(2)
    expect(page.locator("#suggestions")).not_to_contain_text("eighteen")
    for word in ("player-eig", "quayside"):
        page.locator("[data-search]").fill(word)
        expect(options).to_have_count(1)
        expect(options).to_contain_text("Nothing begins so")


def test_without_a_script_the_box_is_a_plain_form(visits: Visits, people: People, till: Till) -> None:
    person = people.signed_in("operator")
    url = f"http://127.0.0.1:{person.platform.port}"
    page = visits.open(DESKTOP, url=url, java_script_enabled=False)
    page.context.add_cookies(
        [{"name": COOKIE, "value": person.http.cookies[COOKIE], "url": f"{url}/console", "httpOnly": True}]
    )
    page.goto("/console")
    page.get_by_role("searchbox").first.fill("player-sev")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="player-seventeen").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("player-seventeen")
