"""The console without JavaScript: nothing is called live, and every button is there, with its form."""

import re

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import DESKTOP, PHONE, Screen, Visits
from tests.browser.test_console import open_signed_in, people
from tests.console.conftest import People
from tests.console.test_banner import PAYOUTS, all_goes_on

__all__ = ["all_goes_on", "people"]

SETTINGS = {"reconcile_interval_s": 0}


def open_plain(visits: Visits, people: People, screen: Screen = DESKTOP, role: str = "operator") -> Page:
    """The console in a browser that runs no scripts."""
    return open_signed_in(visits, people.signed_in(role), screen, has_scripts=False)


def test_without_scripts_the_overview_is_not_called_live_and_says_when_it_was_read(
    visits: Visits, people: People
) -> None:
    page = open_plain(visits, people)
    page.goto("/console")
    expect(page.locator(".live-on")).to_be_hidden()
    expect(page.locator(".live-read")).to_contain_text(
        re.compile(r"as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
    )
    expect(page.locator(".held .as-of").first).to_be_visible()


def test_with_scripts_the_same_page_is_live(visits: Visits, people: People) -> None:
    page = open_signed_in(visits, people.signed_in("operator"), DESKTOP)
    page.goto("/console")
    expect(page.locator(".live-on")).to_be_visible()
    expect(page.locator(".live-read")).to_be_hidden()


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=lambda screen: screen.name)
def test_payouts_are_stopped_without_scripts(visits: Visits, people: People, screen: Screen) -> None:
    page = open_plain(visits, people, screen)
    page.goto(PAYOUTS)
    card = page.locator("section", has=page.get_by_role("heading", name="TRC20"))
    card.get_by_label("Reason").fill("the node shows odd balances")
    card.get_by_role("button", name="Stop payouts").click()
    expect(page.locator("main")).to_contain_text("Stopped: nothing new is signed on TRC20.")
    expect(card).to_contain_text("the node shows odd balances")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= screen.width


def test_the_menu_is_there_without_scripts_on_a_phone(visits: Visits, people: People) -> None:
    page = open_plain(visits, people, PHONE)
    page.goto("/console")
    page.get_by_role("link", name="Payouts", exact=True).click()
    expect(page).to_have_url(re.compile(r"/console/payouts$"))
