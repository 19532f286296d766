"""A merchant's callback endpoints in a real browser: a test event is sent, and its outcome appears."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import PHONE, CheckAxe, Visits
from tests.browser.test_console import open_signed_in
from tests.console.conftest import People
from tests.journeys.conftest import Platform, Shop
from tests.journeys.endpoint import open_endpoint

WORKING = True


@pytest.fixture
def people(platform: Platform) -> Iterator[People]:
    """Operators at the console."""
    made = People(platform)
    yield made
    made.leave()


def test_the_outcome_of_a_test_event_appears_without_a_reload(
    visits: Visits, people: People, shop: Shop, check_axe: CheckAxe
) -> None:
    page = open_signed_in(visits, people.signed_in("merchant", shop.merchant_id), PHONE)
    page.goto(f"/console/merchants/{shop.merchant_id}/endpoints")
    with open_endpoint() as endpoint:
        page.get_by_label("URL").fill(endpoint.url)
        page.keyboard.press("Enter")
        expect(page.get_by_text("evt_test_1")).to_be_visible()
        expect(page.locator("#test-events").get_by_text("200", exact=True)).to_be_visible()
        assert len(endpoint.told) == 1
    check_axe(page)
