"""A merchant's request log and usage in a real browser: searched with the keyboard, opened, on a phone."""

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


def test_a_request_is_found_by_its_id_and_opened(
    visits: Visits, people: People, shop: Shop, check_axe: CheckAxe
) -> None:
    done = shop.client.do("getMerchantBalance")
    shop.client.do("getMerchantCustomer", extUserId="ann")
    recorder = shop.platform.web.dependencies.request_recorder
    assert recorder is not None
    shop.platform.run(recorder.flush)
    page = open_signed_in(visits, people.signed_in("merchant", shop.merchant_id), PHONE)
    page.goto(f"/console/merchants/{shop.merchant_id}/requests")
    expect(page.locator("details")).not_to_have_count(0)
    page.get_by_label("Request id").fill(done.headers["x-request-id"])
    page.keyboard.press("Enter")
    line = page.locator("details.refusal")
    expect(line).to_have_count(1)
    line.locator("summary").press("Enter")
    expect(page.get_by_text(f"{shop.client.app_key}").last).to_be_visible()
    check_axe(page)
    page.get_by_role("link", name="Usage and limits").click()
    expect(page.get_by_text("Requests in 24 hours")).to_be_visible()
    page.locator("details.refusal summary").first.press("Enter")
    check_axe(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE.width
