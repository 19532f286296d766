"""The merchant's own people in a real browser: a key is added, limited, rolled and revoked."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import PHONE, CheckAxe, Visits
from tests.browser.test_console import open_signed_in
from tests.console.conftest import People
from tests.journeys.conftest import Platform, Shop


@pytest.fixture
def people(platform: Platform) -> Iterator[People]:
    """Operators at the console."""
    made = People(platform)
    yield made
    made.leave()


def test_a_key_is_added_limited_rolled_and_revoked_on_a_phone(
    visits: Visits, people: People, shop: Shop, check_axe: CheckAxe
) -> None:
    visits.allow("422")
    mei = people.signed_in("merchant", shop.merchant_id)
    page = open_signed_in(visits, mei, PHONE)
    page.goto(f"/console/merchants/{shop.merchant_id}/keys")
    page.get_by_role("link", name="Add a key").click()
    page.get_by_label("Name").fill("till")
    for choice in page.get_by_role("checkbox").all():
        choice.uncheck()
    page.get_by_role("button", name="Add the key").click()
    expect(page.get_by_text("Choose at least one operation.")).to_be_visible()
    check_axe(page)
    page.get_by_label("getMerchantBalance").check()
    page.get_by_role("button", name="Add the key").click()
    expect(page.get_by_text("Keep this now: it is shown this once")).to_be_visible()
    app_key = page.get_by_text(re.compile("^mk_test_")).first.inner_text()
    secret = page.get_by_text(re.compile("^[A-Za-z0-9]{32}$")).inner_text()
    till = shop.with_client(app_key=app_key, secret=secret)
    till.do("getMerchantBalance")
    page.get_by_role("link", name="I have kept it").click()
    page.get_by_role("link", name="till").click()
    check_axe(page)
    page.get_by_role("button", name="Roll the secret").click()
    check_axe(page, "dialog[open]")
    page.get_by_label("The old secret works for another").select_option("1 hour")
    page.get_by_role("button", name="Roll", exact=True).click()
    expect(page.get_by_text("has a new secret")).to_be_visible()
    till.do("getMerchantBalance")
    page.get_by_role("link", name="I have kept it").click()
    page.get_by_role("link", name="till").click()
    expect(page.get_by_text("Two secrets are valid")).to_be_visible()
    page.get_by_role("button", name="Revoke the key").click()
    page.locator("dialog[open]").get_by_role("button", name="Revoke", exact=True).click()
    expect(page.get_by_role("heading", name="Revoked keys")).to_be_visible()
    till.expect(40100, "getMerchantBalance")
    check_axe(page)


def test_a_key_is_added_with_the_keyboard_alone(visits: Visits, people: People, shop: Shop) -> None:
    page = open_signed_in(visits, people.signed_in("merchant", shop.merchant_id))
    page.goto(f"/console/merchants/{shop.merchant_id}/keys/new")
    page.get_by_label("Name").focus()
    page.keyboard.type("night job")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Keep this now: it is shown this once")).to_be_visible()
